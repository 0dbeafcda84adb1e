package origins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// idle is the timeout of a consumer for the next record. A consumer that got records of another
// partition may have skipped its own and would wait forever.
const idle = 15 * time.Second

// configurations returns configurations of franz-go consumers, by name. Small fetch limits make the server leave
// partitions out of a response and read them first for the next one.
func (s *Set) configurations() map[string][]kgo.Opt {
	configurations := map[string][]kgo.Opt{
		"default": nil,
		"group":   {kgo.ConsumerGroup(s.prefix + "-franz"), kgo.DisableAutoCommit()},
	}
	for _, response := range []int32{200, 300, 600, 1000, 3000} {
		for _, partition := range []int32{100, 250, 1000} {
			name := fmt.Sprintf("%d KiB, %d KiB for each partition", response, partition)
			configurations[name] = []kgo.Opt{
				kgo.FetchMaxBytes(response << 10),
				kgo.FetchMaxPartitionBytes(partition << 10),
			}
		}
	}
	return configurations
}

// Franz reads all topics with franz-go consumers in several configurations, one after the other.
func (s *Set) Franz(ctx context.Context) error {
	var failures []error
	for name, options := range s.configurations() {
		if err := s.consume(ctx, options); err != nil {
			failures = append(failures, fmt.Errorf("franz-go, %s: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

// FranzLive reads all topics with one franz-go consumer while they are written.
func (s *Set) FranzLive(ctx context.Context) error {
	read := make(chan error, 1)
	go func() { read <- s.consume(ctx, nil) }()
	return errors.Join(s.Write(ctx), <-read)
}

func (s *Set) consume(ctx context.Context, options []kgo.Opt) error {
	client, err := s.connect(append([]kgo.Opt{
		kgo.ConsumeTopics(s.Topics()...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, options...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	r := s.NewReading()
	for !r.Complete() {
		waiting, cancel := context.WithTimeout(ctx, idle)
		fetches := client.PollFetches(waiting)
		cancel()
		if err := fetches.Err0(); err != nil {
			return errors.Join(err, r.Err())
		}
		fetches.EachRecord(func(record *kgo.Record) {
			r.Add(record.Topic, record.Partition, record.Offset,
				record.Value)
		})
	}
	return r.Err()
}
