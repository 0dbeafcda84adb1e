package stream

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// preparing is the time, and the broker's processor time, that a row spent before
// what it measures.
var preparing, preparingCPU time.Duration

// prepare leaves what f does out of the measurement.
func prepare(b *testing.B, k *broker, f func()) {
	b.Helper()
	began, cpu := time.Now(), k.cpu(b)
	f()
	preparing, preparingCPU = preparing+time.Since(began), preparingCPU+k.cpu(b)-cpu
}

// load is what producers write.
type load struct {
	records, size, batch, producers int
	codec                           kgo.CompressionCodec
}

func produceRow(name string, l load) row {
	return row{name, func(b *testing.B, k *broker, topic string) (int, time.Duration) {
		var clients []*kgo.Client
		prepare(b, k, func() { clients = l.connect(b, k, topic) })
		l.produce(b, clients)
		return l.records, 0
	}}
}

// connect makes the topic and the producers, and has each of them ready.
func (l *load) connect(b *testing.B, k *broker, topic string) []*kgo.Client {
	b.Helper()
	if _, err := kadm.NewClient(k.client(b)).CreateTopic(b.Context(), 1, 1, nil, topic); err != nil {
		b.Fatalf("%s: creating %s: %v", k.name, topic, err)
	}
	clients := make([]*kgo.Client, l.producers)
	for i := range clients {
		clients[i] = k.client(b, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(int32(l.batch)),
			kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchCompression(l.codec), kgo.MaxBufferedRecords(50_000))
		if err := clients[i].ProduceSync(b.Context(), &kgo.Record{Value: []byte("first")}).FirstErr(); err != nil {
			b.Fatalf("%s: %v", k.name, err)
		}
	}
	return clients
}

// produce writes the records, all of them acknowledged when it returns. They are
// half as large when compressed.
func (l *load) produce(b *testing.B, clients []*kgo.Client) {
	b.Helper()
	value := bytes.Repeat([]byte("x"), l.size)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range l.size / 2 {
		value[i] = byte(r.Uint32())
	}
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			for range l.records / len(clients) {
				c.Produce(b.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
					if err != nil {
						b.Error(err)
					}
				})
			}
			if err := c.Flush(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
}

// singleRow has every producer wait for each record.
func singleRow(name string, producers, each int) row {
	return row{name, func(b *testing.B, k *broker, topic string) (int, time.Duration) {
		l := load{producers: producers, batch: 16 << 10}
		var clients []*kgo.Client
		prepare(b, k, func() { clients = l.connect(b, k, topic) })
		value := bytes.Repeat([]byte("x"), 1024)
		times := make([]time.Duration, producers*each)
		var group sync.WaitGroup
		for n, c := range clients {
			group.Go(func() {
				for i := range each {
					began := time.Now()
					done := make(chan error, 1)
					c.TryProduce(b.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) { done <- err })
					_ = c.Flush(b.Context()) // it does not linger
					if err := <-done; err != nil {
						b.Error(err)
					}
					times[n*each+i] = time.Since(began)
				}
			})
		}
		group.Wait()
		slices.SortFunc(times, cmp.Compare[time.Duration])
		return producers * each, times[len(times)/2]
	}}
}

func consumeRow(name string, l load) row {
	return row{name, func(b *testing.B, k *broker, topic string) (int, time.Duration) {
		prepare(b, k, func() { l.produce(b, l.connect(b, k, topic)) })
		c := k.client(b, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
		defer cancel()
		for got := 0; got < l.records; {
			fetches := c.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				b.Fatalf("%s: consuming: got %d records, then %v", k.name, got, err)
			}
			got += fetches.NumRecords()
		}
		return l.records, 0
	}}
}

// commitRow has consumers, each of a group of its own, commit again and again.
func commitRow(name string, consumers, each int) row {
	return row{name, func(b *testing.B, k *broker, topic string) (int, time.Duration) {
		l := load{producers: 1, batch: 16 << 10}
		admins := make([]*kadm.Client, consumers)
		commit := func(n int, offset int64) {
			offsets := make(kadm.Offsets)
			offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: offset, LeaderEpoch: -1})
			res, err := admins[n].CommitOffsets(b.Context(), fmt.Sprintf("%s-%d", topic, n), offsets)
			if err == nil {
				err = res.Error()
			}
			if err != nil {
				b.Error(err)
			}
		}
		prepare(b, k, func() {
			l.connect(b, k, topic)
			var group sync.WaitGroup
			for n := range admins {
				admins[n] = kadm.NewClient(k.client(b))
				group.Go(func() { commit(n, 0) })
			}
			group.Wait()
		})
		var group sync.WaitGroup
		for n := range admins {
			group.Go(func() {
				for i := range each {
					commit(n, int64(i))
				}
			})
		}
		group.Wait()
		return consumers * each, 0
	}}
}
