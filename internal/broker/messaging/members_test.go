package messaging_test

import (
	"testing"

	"freshet/internal/broker/messaging"
)

// TestChangesOfAnotherMember: what a caller was told at one member holds for the next call
// at another, which has not heard of it yet.
func TestChangesOfAnotherMember(t *testing.T) {
	t.Parallel()
	a := newCluster(t, messaging.Options{})
	b := openOver(t, a.engine, messaging.Options{})
	for range 50 {
		name := a.create("x", 2)
		a.do(a.DeleteTopic(t.Context(), name, false))
		b.create("x", 3) // as far as b knows, there may be one of 2
		b.do(b.DeleteTopic(t.Context(), name, false))
		a.create("x", 1)
		b.do(b.GrowTopic(t.Context(), name, 4)) // of another topic than b knows
		a.do(a.DeleteTopic(t.Context(), name, false))
	}
}
