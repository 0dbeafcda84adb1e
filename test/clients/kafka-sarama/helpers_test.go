package sarama_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// config returns the configuration of a client with the newest protocol version.
func config(t *testing.T) *sarama.Config {
	t.Helper()
	if os.Getenv("FRESHET_STREAM") == "" {
		t.Skip("FRESHET_STREAM is not set")
	}
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = sarama.SASLTypePlaintext
	c.Net.SASL.User, c.Net.SASL.Password = "public/default", "token:"+os.Getenv("FRESHET_TOKEN")
	c.Producer.Return.Successes = true
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	return c
}

// idempotent changes a configuration to that of an idempotent producer.
func idempotent(c *sarama.Config) *sarama.Config {
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Net.MaxOpenRequests = 1
	return c
}

func servers() []string { return strings.Split(os.Getenv("FRESHET_STREAM"), ",") }

// authority returns a configuration that trusts the server's certificate authority.
func authority(t *testing.T) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("FRESHET_CA"))
	do(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closing closes c when the test ends.
func closing(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// unique returns a name that no other test uses.
func unique(prefix string) string {
	return "sarama-" + prefix + "-" + strings.ToLower(rand.Text()[:8])
}

func admin(t *testing.T, c *sarama.Config) sarama.ClusterAdmin {
	t.Helper()
	a, err := sarama.NewClusterAdmin(servers(), c)
	do(t, err)
	closing(t, a)
	return a
}

// topic creates a topic.
func topic(t *testing.T, prefix string, partitions int32) string {
	t.Helper()
	name := unique(prefix)
	do(t, admin(t, config(t)).CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1},
		false))
	return name
}

// produce sends a value to each partition.
func produce(t *testing.T, topic string, partitions int32, value string) {
	t.Helper()
	c := idempotent(config(t))
	c.Producer.Partitioner = sarama.NewManualPartitioner
	p, err := sarama.NewSyncProducer(servers(), c)
	do(t, err)
	defer func() { _ = p.Close() }()
	for i := range partitions {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{
			Topic: topic, Partition: i,
			Value: sarama.StringEncoder(value),
		})
		do(t, err)
	}
}

// within receives a value and fails the test after 30 s.
func within[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("got nothing in 30 s, want %s", what)
		panic("unreachable")
	}
}
