// Command kafka produces the messages of its arguments to a topic over the Kafka protocol and prints all
// messages of the topic:
//
//	kafka ADDRESS TOKEN-FILE TOPIC [MESSAGE]...
//
// packages.sh and image.sh run it beside an installed server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kafka:", err)
		os.Exit(1) //nolint:gocritic // the process ends, so the context needs no cancel
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 3 {
		return errors.New("usage: kafka ADDRESS TOKEN-FILE TOPIC [MESSAGE]")
	}
	token, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	topic := args[2]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(args[0]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SASL(plain.Auth{User: "user", Pass: "token:" + strings.TrimSpace(string(token))}.AsMechanism()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, message := range args[3:] {
		record := &kgo.Record{Topic: topic, Value: []byte(message)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return fmt.Errorf("producing: %w", err)
		}
	}
	client.AddConsumeTopics(topic) // not before, so that the first fetch has the messages
	return printAll(ctx, client)
}

// printAll prints the values up to the high watermarks of the first fetch.
func printAll(ctx context.Context, client *kgo.Client) error {
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("fetching: %w", err)
		}
		var rest int64
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, record := range p.Records {
				fmt.Println(string(record.Value))
				rest = p.HighWatermark - record.Offset - 1
			}
		})
		if fetches.NumRecords() > 0 && rest <= 0 {
			return nil
		}
	}
}
