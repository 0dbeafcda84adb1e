package replicated

import (
	"errors"
	"testing"
)

// TestWriterEndsWhileAnAcknowledgementArrives: an owner gives up its shard at the moment an
// acknowledgement arrives. The waiter gets the error for an unknown outcome, and the writer
// does not panic.
func TestWriterEndsWhileAnAcknowledgementArrives(t *testing.T) {
	t.Parallel()
	e := &entry{acks: make(chan ackResult, 1), done: make(chan struct{})}
	w := &writer{queue: []*entry{e}, lost: make(chan struct{}), unacked: new(Unacknowledged)}
	if first, _ := w.head(); first != e {
		t.Fatal("head of the queue: got another entry, want the first")
	}
	ended := errors.New("given up")
	w.lose(ended)
	w.finish(e, 1)
	if _, err := (&pendingAppend{w, e}).wait(); !errors.Is(err, ended) {
		t.Errorf("waiting for the entry: got %v, want %v", err, ended)
	}
}
