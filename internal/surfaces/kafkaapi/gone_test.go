package kafkaapi_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/surfaces/kafkaapi"
	eventually "freshet/test/poll"
)

// stuckEngine appends batches that do not become durable until the caller gives up.
type stuckEngine struct {
	engine.Engine
	waiting chan struct{}
}

type stuckAppend struct {
	engine.PendingAppend
	waiting chan struct{}
}

func (a stuckAppend) Wait(ctx context.Context) error {
	close(a.waiting)
	<-ctx.Done()
	return ctx.Err()
}

func (e *stuckEngine) AppendBatch(ctx context.Context, id engine.TopicID, partition int32, batch engine.MessageBatch,
	attributes []engine.AttributeWrite,
) (engine.PendingAppend, error) {
	pending, err := e.Engine.AppendBatch(ctx, id, partition, batch, attributes)
	return stuckAppend{pending, e.waiting}, err
}

// TestClientThatGoesAwayIsNoError closes a connection while its batch waits for the disk. The canceled request is not
// logged as an error.
func TestClientThatGoesAwayIsNoError(t *testing.T) {
	t.Parallel()
	memory, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	eng := &stuckEngine{memory, make(chan struct{})}
	var log lockedBuffer
	w := newHarnessOn(t, eng, func(o *kafkaapi.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 12, -1, 600_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic, row.Partitions = "a", []kmsg.ProduceRequestTopicPartition{{Records: oneRecord("v")}}
	produce.Topics = append(produce.Topics, row)
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("gone")).AppendRequest(nil, produce, 100)
	if _, err := wire.conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	<-eng.waiting
	wire.close()
	eventually.Until(t, time.Minute, "the request is canceled", func() bool {
		return strings.Contains(log.String(), "Kafka request")
	})
	if got := log.String(); strings.Contains(got, "level=ERROR") {
		t.Errorf("got the log %s, want no error", got)
	}
}
