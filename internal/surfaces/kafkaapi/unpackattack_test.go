package kafkaapi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

// gzipRecord returns a compressed batch with one record.
func gzipRecord(value string) []byte {
	plain := oneRecord(value)
	out := bytes.NewBuffer(bytes.Clone(plain[:records.BatchHeaderSize]))
	w := gzip.NewWriter(out)
	_, _ = w.Write(plain[records.BatchHeaderSize:])
	_ = w.Close()
	batch := out.Bytes()
	binary.BigEndian.PutUint16(batch[21:], uint16(records.Gzip))
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// TestAttackUnpackingOfAnotherCaller has another caller take all memory for decompressed batches that
// it gets. A producer of this organization has a share of its own: its compressed batch is stored.
func TestAttackUnpackingOfAnotherCaller(t *testing.T) {
	t.Parallel()
	budget := unpacking.New(32 << 20)
	eng, release, err := pebbletest.OpenMemoryBudget(messaging.Splitter{}, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	w := newHarnessOn(t, eng)
	broker, err := messaging.Open(t.Context(), eng,
		messaging.Options{Logger: slog.New(slog.DiscardHandler), Unpacking: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	w.cluster.Topics, w.cluster.Appends = broker.Kafka, broker.Kafka
	w.partitioned("a", 1)

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

	const attempts = 5
	succeeded := 0
	wire := w.wire(w.token)
	for range attempts {
		produce := kmsg.NewPtrProduceRequest()
		produce.Version, produce.Acks, produce.TimeoutMillis = 12, -1, 10_000
		row := kmsg.NewProduceRequestTopic()
		row.Topic, row.Partitions = "a", []kmsg.ProduceRequestTopicPartition{{Records: gzipRecord("v")}}
		produce.Topics = append(produce.Topics, row)
		if got := roundTrip[*kmsg.ProduceResponse](wire, produce).Topics[0].Partitions[0]; got.ErrorCode != 0 {
			succeeded++
			t.Errorf("got %+v, want success", got)
			break
		}
	}
	tally.Attack(t, "caller that takes all memory for decompressed batches from producers", attempts, succeeded)
}
