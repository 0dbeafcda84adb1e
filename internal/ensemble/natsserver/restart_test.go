package natsserver

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/test/tally"
)

// TestFaultStreamsStopped: a server that has stopped its streams, as on a full disk,
// serves them again, also over connections opened before.
func TestFaultStreamsStopped(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Name: "a", Dir: t.TempDir(), Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	conn, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	const stops = 2
	for i := range uint64(stops) {
		if ack, err := js.Publish(ctx, "s", []byte("x")); err != nil || ack.Sequence != i+1 {
			t.Fatalf("publish: got %+v and error %v, want message %d", ack, err, i+1)
		}
		if err := s.nats.Load().DisableJetStream(); err != nil {
			t.Fatal(err)
		}
		if s.Health() == nil {
			t.Error("health while streams are stopped: got none, want an error")
		}
		for {
			try, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // a stopped server does not respond
			stream, err := js.Stream(try, "S")
			cancel()
			if err == nil {
				if got := stream.CachedInfo().State.LastSeq; got != i+1 {
					t.Fatalf("got a stream up to message %d, want %d", got, i+1)
				}
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("got error %v, want the stream again", err)
			}
		}
	}
	tally.Fault{Name: "streams of a server stopped", Injected: stops, Checked: stops}.Record(t)
}
