package messaging_test

import (
	"testing"

	"freshet/internal/broker/messaging"
)

// TestChangesOfAnotherMember checks that a change at one member is visible to the next call at
// another member, whose cached catalogue does not have it yet.
func TestChangesOfAnotherMember(t *testing.T) {
	t.Parallel()
	a := newCluster(t, messaging.Options{})
	b := openOver(t, a.engine, messaging.Options{})
	for range 50 {
		name := a.create("x", 2)
		a.do(a.Catalogue.DeleteTopic(t.Context(), name, false))
		b.create("x", 3) // b's cached catalogue may still have the topic with 2 partitions
		b.do(b.Catalogue.DeleteTopic(t.Context(), name, false))
		a.create("x", 1)
		b.do(b.Catalogue.GrowTopic(t.Context(), name, 4)) // b's cached catalogue has another incarnation
		a.do(a.Catalogue.DeleteTopic(t.Context(), name, false))
	}
}
