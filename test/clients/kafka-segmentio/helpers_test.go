package segmentio_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
)

func address(t *testing.T) string {
	t.Helper()
	at := os.Getenv("FRESHET_STREAM")
	if at == "" {
		t.Skip("FRESHET_STREAM is not set")
	}
	return at
}

func login() plain.Mechanism {
	return plain.Mechanism{Username: "user", Password: "token:" + os.Getenv("FRESHET_TOKEN")}
}

// client returns a client that makes single requests.
func client(t *testing.T) *kafka.Client {
	t.Helper()
	transport := &kafka.Transport{SASL: login(), MetadataTTL: time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(address(t)), Timeout: 20 * time.Second, Transport: transport}
}

func dialer() *kafka.Dialer {
	return &kafka.Dialer{SASLMechanism: login(), Timeout: 10 * time.Second, DualStack: true}
}

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

func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// unique returns a name that no other test uses.
func unique(prefix string) string {
	return "segmentio-" + prefix + "-" + strings.ToLower(rand.Text()[:8])
}

// topic creates a topic and waits until it is in the clients' metadata, which they cache.
func topic(t *testing.T, c *kafka.Client, prefix string, partitions int, config ...kafka.ConfigEntry) string {
	t.Helper()
	name := unique(prefix)
	created, err := c.CreateTopics(short(t),
		&kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
			Topic: name, NumPartitions: partitions,
			ReplicationFactor: 1, ConfigEntries: config,
		}}})
	if err != nil || created.Errors[name] != nil {
		t.Fatalf("create: got %v, %v; want success", created, err)
	}
	for ctx := short(t); ctx.Err() == nil; {
		all, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
		do(t, err)
		if len(all.Topics) == 1 && len(all.Topics[0].Partitions) == partitions {
			return name
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("topic %s is not in the metadata", name)
	return ""
}
