package confluent_test

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// kafkaConfig returns the configuration of a Kafka client.
func kafkaConfig(t *testing.T, more kafka.ConfigMap) *kafka.ConfigMap {
	t.Helper()
	address := os.Getenv("FRESHET_STREAM")
	if address == "" {
		t.Skip("FRESHET_STREAM is not set")
	}
	c := kafka.ConfigMap{
		"bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
		"sasl.username": "public/default", "sasl.password": "token:" + os.Getenv("FRESHET_TOKEN"),
	}
	maps.Copy(c, more)
	return &c
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// unique returns a name that no other test uses.
func unique(prefix string) string {
	return "confluent-" + prefix + "-" + strings.ToLower(rand.Text()[:8])
}

func newAdmin(t *testing.T) *kafka.AdminClient {
	t.Helper()
	a, err := kafka.NewAdminClient(kafkaConfig(t, nil))
	do(t, err)
	t.Cleanup(a.Close)
	return a
}

// newTopic creates a topic.
func newTopic(t *testing.T, prefix string, partitions int, config map[string]string) string {
	t.Helper()
	name := unique(prefix)
	results, err := newAdmin(t).CreateTopics(short(t),
		[]kafka.TopicSpecification{{Topic: name, NumPartitions: partitions, ReplicationFactor: 1, Config: config}})
	if err != nil || results[0].Error.Code() != kafka.ErrNoError {
		t.Fatalf("create %s: got %v, %v; want success", name, results, err)
	}
	return name
}

// send produces messages and waits for all of them.
func send(t *testing.T, config *kafka.ConfigMap, messages ...*kafka.Message) {
	t.Helper()
	p, err := kafka.NewProducer(config)
	do(t, err)
	defer p.Close()
	delivered := make(chan kafka.Event, len(messages))
	for _, m := range messages {
		do(t, p.Produce(m, delivered))
	}
	for range messages {
		select {
		case e := <-delivered:
			if m, ok := e.(*kafka.Message); !ok || m.TopicPartition.Error != nil {
				t.Fatalf("delivery: %v", e)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no delivery report within 30 s")
		}
	}
}

// to returns a message for a partition.
func to(topic string, partition int32, value string) *kafka.Message {
	return &kafka.Message{
		TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: partition},
		Value:          []byte(value),
	}
}

func newConsumer(t *testing.T, group string, more kafka.ConfigMap) *kafka.Consumer {
	t.Helper()
	config := kafka.ConfigMap{"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": false}
	maps.Copy(config, more)
	c, err := kafka.NewConsumer(kafkaConfig(t, config))
	do(t, err)
	t.Cleanup(func() { _ = c.Close() }) // may already be closed
	return c
}

// receive reads one message.
func receive(t *testing.T, c *kafka.Consumer) *kafka.Message {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		m, err := c.ReadMessage(time.Until(end))
		if err == nil {
			return m
		}
		// The consumer also returns errors that it recovers from, such as closed connections.
		var failed kafka.Error
		if !errors.As(err, &failed) || failed.IsFatal() || failed.IsTimeout() || time.Now().After(end) {
			t.Fatalf("read: %v", err)
		}
	}
}
