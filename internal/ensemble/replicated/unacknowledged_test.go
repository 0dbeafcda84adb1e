package replicated

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestUnacknowledgedBytesAreCounted checks the bytes in flight of two writers: the logs are crowded while both
// wait for acknowledgements, and no longer when the bytes are acknowledged or a writer has ended.
func TestUnacknowledgedBytesAreCounted(t *testing.T) {
	t.Parallel()
	shared := new(Unacknowledged)
	relays, writers := make([]*relay, 2), make([]*writer, 2)
	for i := range relays {
		relays[i], writers[i], _ = newRelay(t, 1)
		writers[i].unacked = shared // nothing is in flight
	}
	batch := make([]byte, maxUnacknowledged/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(batch)
	releases, pending := make([]func(), 2), make([]*pendingAppend, 2)
	for i, w := range writers {
		if w.Crowded() {
			t.Errorf("writer %d: got crowded logs with %d bytes in flight, want none", i, shared.bytes.Load())
		}
		releases[i] = relays[i].hold()
		defer releases[i]()
		pending[i] = w.Append(batch).(*pendingAppend)
	}
	if got := shared.bytes.Load(); got != 2*int64(len(batch)) || !writers[0].Crowded() {
		t.Errorf("two batches: got %d bytes, crowded %t; want %d and true", got, writers[0].Crowded(), 2*len(batch))
	}
	releases[0]()
	if _, err := pending[0].wait(); err != nil {
		t.Fatalf("append: got error %v, want none", err)
	}
	if got := shared.bytes.Load(); got != int64(len(batch)) || writers[1].Crowded() {
		t.Errorf("one batch: got %d bytes, crowded %t; want %d and false", got, writers[1].Crowded(), len(batch))
	}
	ended := errors.New("given up")
	writers[1].close(ended)
	if _, err := pending[1].wait(); !errors.Is(err, ended) {
		t.Errorf("append of a writer that has ended: got error %v, want %v", err, ended)
	}
	writers[1].Append(batch)
	if got := shared.bytes.Load(); got != 0 {
		t.Errorf("writer has ended: got %d bytes in flight, want 0", got)
	}
}
