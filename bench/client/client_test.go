// Package client measures the Go client package against the real binary: producing
// one message per call, producing through a Producer, and receiving and acknowledging
// the messages of a subscription. `make bench` runs it. bench/messages measures the
// server's cost per call without this client.
package client

import (
	"crypto/rand"
	"testing"

	"freshet.dev/client"
	"freshet/test/testserver"
)

var (
	binary string
	server *testserver.Server
)

func TestMain(m *testing.M) { testserver.MainServer(m, &binary, &server, testserver.Options{}) }

const size = 1024

// topic creates a topic and a subscription for a benchmark.
func topic(b *testing.B) (*client.Topic, *client.Subscription) {
	b.Helper()
	c, err := client.New(client.Config{BaseURL: server.URL, TokenSource: client.StaticToken(server.Token)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	t := c.Topic("bench-" + rand.Text())
	if err := t.Create(b.Context(), client.TopicOptions{Partitions: 1}); err != nil {
		b.Fatal(err)
	}
	sub := t.Subscription("s")
	if err := sub.Create(b.Context(), client.SubscriptionOptions{From: client.Earliest}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	return t, sub
}

// send stores n messages through a Producer and waits for all of them.
func send(b *testing.B, t *client.Topic, n int) {
	b.Helper()
	p := t.NewProducer(client.ProducerOptions{})
	value := make([]byte, size)
	for range n {
		err := p.Send(b.Context(), client.Message{Value: value}, func(_ client.Produced, err error) {
			if err != nil {
				b.Error(err)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkProduce waits for the response to each message.
func BenchmarkProduce(b *testing.B) {
	t, _ := topic(b)
	value := make([]byte, size)
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := t.Produce(b.Context(), client.Message{Value: value}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkProducer sends without waiting and flushes once at the end.
func BenchmarkProducer(b *testing.B) {
	t, _ := topic(b)
	b.ResetTimer()
	send(b, t, b.N)
}

// BenchmarkMessages receives and acknowledges messages that are already stored.
func BenchmarkMessages(b *testing.B) {
	t, sub := topic(b)
	send(b, t, b.N)
	b.ResetTimer()
	got := 0
	for message, err := range sub.Messages(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		message.Ack()
		if got++; got == b.N {
			break
		}
	}
}
