package messaging_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/pebble/pebbletest"
)

// TestIdleProducersExpire checks that the state of producers without batches for a day is removed and gives its
// bytes back, in memory and after a restart, and that a producer that comes back is accepted.
func TestIdleProducersExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
		if err != nil {
			t.Fatal(err)
		}
		limits := quota.New(quota.Limits{}, nil).Organization("acme").Open("prod", quota.Limits{})
		open := func() *messaging.Broker {
			b, err := messaging.Open(t.Context(), eng,
				messaging.Options{Quota: limits, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b := open()
		if _, err = b.Kafka.CreateKafkaTopic(t.Context(), topic("orders"), 1, nil, false); err != nil {
			t.Fatal(err)
		}
		send := func(producer uint64, sequence int32) {
			t.Helper()
			to, err := b.Kafka.KafkaTopic(t.Context(), topic("orders"))
			if err == nil {
				_, err = to.Append(t.Context(), 0, batchOf(producer, sequence), messaging.Sender{Account: "acme/a"})
			}
			if err != nil {
				t.Fatalf("batch %d of producer %d: got error %v, want none", sequence, producer, err)
			}
		}
		for producer := range uint64(3) {
			send(producer, 0)
		}
		three := limits.Used(quota.AccountStateBytes)
		time.Sleep(23 * time.Hour)
		send(2, 1)
		if got := limits.Used(quota.AccountStateBytes); got != three {
			t.Errorf("got %d bytes within a day, want %d", got, three)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got := limits.Used(quota.AccountStateBytes); got != three/3 {
			t.Errorf("got %d bytes of the producer in use, want %d", got, three/3)
		}
		send(0, 7) // the state is gone, so any sequence number is accepted
		send(2, 2)
		if got := limits.Used(quota.AccountStateBytes); got != three/3*2 {
			t.Errorf("got %d bytes of two producers in use, want %d", got, three/3*2)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		limits = quota.New(quota.Limits{}, nil).Organization("acme").Open("prod", quota.Limits{})
		time.Sleep(23 * time.Hour)
		b = open()
		send(2, 3)
		if got := limits.Used(quota.ClientStateBytes); got != three/3*2 {
			t.Errorf("got %d bytes after a restart, want %d", got, three/3*2)
		}
		if err := errors.Join(b.Close(), eng.Close()); err != nil {
			t.Error(err)
		}
	})
}
