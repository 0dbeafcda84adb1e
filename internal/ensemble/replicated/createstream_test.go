package replicated

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natstest"
)

// startingJetStream is a JetStream that has just started: the first attempts fail, because the meta
// leader does not know the other servers yet.
type startingJetStream struct {
	jetstream.JetStream
	left atomic.Int32
}

func (u *startingJetStream) CreateStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	if u.left.Add(-1) >= 0 {
		return nil, &jetstream.APIError{
			Code: 400, ErrorCode: codeNoPeers,
			Description: "no suitable peers for placement, peer offline",
		}
	}
	return u.JetStream.CreateStream(ctx, config)
}

func TestLogsAreCreatedWhenAllServersAreKnown(t *testing.T) {
	js, err := jetstream.New(natstest.New(t, 1, natstest.Unsafe).Connect(0))
	if err != nil {
		t.Fatal(err)
	}
	young := &startingJetStream{JetStream: js}
	young.left.Store(3)
	st := &stream{name: "L", subject: "l"}
	if _, err := st.createFrom(t.Context(), &Options{JetStream: young, Replicas: 1}, logID{1}, 1); err != nil {
		t.Fatalf("got %v, want the stream created when all servers are known", err)
	}
	if left := young.left.Load(); left != -1 {
		t.Errorf("got %d more calls than needed", -1-left)
	}
}
