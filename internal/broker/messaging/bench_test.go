package messaging_test

import (
	"log/slog"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/pebble/pebbletest"
)

// newBenchBroker returns a broker on an engine in memory, with one topic and one subscription.
func newBenchBroker(b *testing.B) *messaging.Broker {
	b.Helper()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = eng.Close() })
	broker, err := messaging.Open(b.Context(), eng, messaging.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = broker.Close() })
	if err := broker.Catalogue.CreateTopic(b.Context(), topic("bench"), messaging.NewTopic{}); err != nil {
		b.Fatal(err)
	}
	start := messaging.Position{Kind: messaging.Earliest}
	if err := broker.Consumer.Subscribe(b.Context(), topic("bench"), "all", start, nil); err != nil {
		b.Fatal(err)
	}
	return broker
}

func BenchmarkProduce(b *testing.B) {
	broker := newBenchBroker(b)
	m := text("a payload of thirty-two bytes....")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := broker.Producer.Produce(b.Context(), topic("bench"), m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProduceReceiveSettle(b *testing.B) {
	broker := newBenchBroker(b)
	m := text("a payload of thirty-two bytes....")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := broker.Producer.Produce(b.Context(), topic("bench"), m); err != nil {
			b.Fatal(err)
		}
		received, err := broker.Consumer.Receive(b.Context(), topic("bench"), "all", messaging.ReceiveOptions{})
		if err != nil || len(received) != 1 {
			b.Fatalf("receive: got %d messages and %v, want one", len(received), err)
		}
		ack := messaging.Settlement{ID: received[0].ID, Action: messaging.Ack}
		if err := broker.Consumer.Settle(b.Context(), topic("bench"), "all", ack); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKafkaAppend(b *testing.B) {
	plain := func(int32) []byte {
		builder := records.NewBuilder(nil, 0)
		builder.Add(&records.Record{Value: []byte("x"), Time: 5})
		return builder.Finish()
	}
	for name, build := range map[string]func(int32) []byte{"plain": plain, "idempotent": idempotent} {
		b.Run(name, func(b *testing.B) {
			broker := newBenchBroker(b)
			b.ReportAllocs()
			sequence := int32(0)
			for b.Loop() {
				found, err := broker.Kafka.KafkaTopic(b.Context(), topic("bench"))
				if err != nil {
					b.Fatal(err)
				}
				appended, err := found.Append(b.Context(), 0, build(sequence), messaging.Sender{})
				if err == nil {
					err = appended.Wait(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
				sequence++
			}
		})
	}
}
