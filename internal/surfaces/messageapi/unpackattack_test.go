package messageapi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/test/tally"
)

// writeCompressed appends a compressed batch, as a Kafka producer does.
func (w *harness) writeCompressed(topic string, count int) {
	w.T.Helper()
	b := records.NewBuilder(nil, 0)
	for i := range count {
		b.Add(&records.Record{Delta: int32(i), Time: 1700000000000, Value: []byte("payload")})
	}
	plain := b.Finish()
	out := bytes.NewBuffer(bytes.Clone(plain[:records.BatchHeaderSize]))
	compress := gzip.NewWriter(out)
	_, _ = compress.Write(plain[records.BatchHeaderSize:])
	_ = compress.Close()
	batch := out.Bytes()
	binary.BigEndian.PutUint16(batch[21:], uint16(records.Gzip))
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	ctx := fairshare.WithCaller(w.T.Context(), fairshare.Caller{Organization: "kafka"})
	placed, err := w.kafkaTopic(topic).Append(ctx, 0, batch, messaging.Sender{})
	if err == nil {
		err = placed.Wait(ctx)
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

// TestAttackUnpackingOfConsumers has another caller take all memory for decompressed batches that it
// gets. Each call that reads a message of a compressed batch still gets it.
func TestAttackUnpackingOfConsumers(t *testing.T) {
	t.Parallel()
	budget := unpacking.New(32 << 20)
	w := newHarness(t, messaging.Options{Unpacking: budget})
	consumed := w.CreateTopic("consumed", 0)
	w.CreateTopic("peeked", 0)

	attacking, stop := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	const holders = 40 // at least so many get memory
	held := make(chan struct{}, 300)
	for range 300 {
		attackers.Go(func() {
			_ = budget.Do(attacking, 256<<10, func(*unpacking.Reservation) error {
				held <- struct{}{}
				<-attacking.Done()
				return nil
			})
		})
	}
	defer attackers.Wait()
	defer stop()
	for range holders {
		<-held
	}

	attempts, succeeded := 0, 0
	for name, read := range map[string]func() int{
		"consumed": func() int { return w.Call("POST", consumed+"/s/message", "").Status },
		"peeked": func() int {
			return w.Call("GET", "/admin/v2/persistent/public/default/peeked/subscription/s/position/1", "").Status
		},
	} {
		w.writeCompressed(name, 3) // no message of it is in the cache
		attempts++
		if status := read(); status != 200 {
			succeeded++
			t.Errorf("%s: got status %d, want 200", name, status)
		}
	}
	tally.Attack(t, "caller that takes all memory for decompressed batches from consumers", attempts, succeeded)
}
