package confluent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// TestKafkaOrigins reads several topics with one consumer and writes the records to files. The parent
// folder's tests check the origin of every record in them (package origins).
func TestKafkaOrigins(t *testing.T) {
	t.Parallel()
	topics := os.Getenv("FRESHET_ORIGIN_TOPICS")
	if topics == "" {
		t.Skip("NOT TESTED: FRESHET_ORIGIN_TOPICS is not set; make test and make test-ensemble set it")
	}
	records, err := strconv.Atoi(os.Getenv("FRESHET_ORIGIN_RECORDS"))
	do(t, err)
	for name, limits := range map[string]kafka.ConfigMap{
		"default": nil,
		// librdkafka raises the response limit to the message limit.
		"small":  {"message.max.bytes": 300_000, "fetch.max.bytes": 300_000, "max.partition.fetch.bytes": 100_000},
		"medium": {"fetch.max.bytes": 10_000_000, "max.partition.fetch.bytes": 250_000, "group.protocol": "consumer"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsumer(t, unique("origins"), limits)
			do(t, c.SubscribeTopics(strings.Split(topics, ","), nil))
			f, err := os.Create(filepath.Join(os.Getenv("FRESHET_ORIGIN_OUTPUT"), "confluent-"+name))
			do(t, err)
			for range records {
				m := receive(t, c)
				at := &m.TopicPartition
				_, err := fmt.Fprintf(f, "%s %d %d %d\n%s\n", *at.Topic, at.Partition, at.Offset, len(m.Value), m.Value)
				do(t, err)
			}
			do(t, f.Close())
		})
	}
}
