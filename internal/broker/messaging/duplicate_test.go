package messaging_test

import (
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"testing"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
)

// idempotent returns a batch with one record of producer 7.
func idempotent(sequence int32) []byte { return batchOf(7, sequence) }

// batchOf returns a batch with one record of a producer.
func batchOf(producer uint64, sequence int32) []byte {
	builder := records.NewBuilder(nil, 0)
	builder.Add(&records.Record{Value: []byte("x"), Time: 5})
	batch := builder.Finish()
	binary.BigEndian.PutUint64(batch[43:], producer)
	binary.BigEndian.PutUint16(batch[51:], 0)
	binary.BigEndian.PutUint32(batch[53:], uint32(sequence))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// TestDuplicateHasTheAppendTimeOfTheOriginal checks that a duplicate batch gets the append time of the
// stored batch, or -1 when the broker no longer has it in memory.
func TestDuplicateHasTheAppendTimeOfTheOriginal(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	stamped := map[string]string{"message.timestamp.type": "LogAppendTime"}
	_, err := c.Kafka.CreateKafkaTopic(ctx, topic("orders"), 1, stamped, false)
	c.do(err)
	send := func(c *cluster, sequence int32) *messaging.AppendedBatch {
		t.Helper()
		to, err := c.Kafka.KafkaTopic(ctx, topic("orders"))
		c.do(err)
		appended, err := to.Append(ctx, 0, idempotent(sequence), messaging.Sender{})
		c.do(err)
		c.do(appended.Wait(ctx))
		return appended
	}
	first := send(c, 0)
	if first.AppendTime <= 0 {
		t.Fatalf("got append time %d, want the time of the append", first.AppendTime)
	}
	for time.Now().UnixMilli() == first.AppendTime { // send the duplicate at another time
		runtime.Gosched()
	}
	send(c, 1)
	if again := send(c, 0); again.First != first.First || again.AppendTime != first.AppendTime {
		t.Errorf("duplicate: got offset %d at time %d, want %d at %d",
			again.First, again.AppendTime, first.First, first.AppendTime)
	}
	restarted := openOver(t, c.engine, messaging.Options{})
	if again := send(restarted, 0); again.First != first.First || again.AppendTime != -1 {
		t.Errorf("duplicate after a restart: got offset %d at time %d, want %d and no time",
			again.First, again.AppendTime, first.First)
	}
}

// TestDeleteOfOneIncarnation checks that Delete removes only the incarnation that was looked up,
// and not a newer topic of the same name.
func TestDeleteOfOneIncarnation(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 1)
	found, err := c.Kafka.KafkaTopic(ctx, name)
	c.do(err)
	c.do(c.Catalogue.DeleteTopic(ctx, name, true))
	c.create("orders", 1)
	wantErr(t, found.Delete(ctx), messaging.ErrNoTopic)
	again, err := c.Kafka.KafkaTopic(ctx, name)
	c.do(err)
	c.do(again.Delete(ctx))
	_, err = c.Kafka.KafkaTopic(ctx, name)
	wantErr(t, err, messaging.ErrNoTopic)
}
