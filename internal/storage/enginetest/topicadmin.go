package enginetest

import (
	"math/rand/v2"

	"freshet/internal/storage/engine"
)

// topicAdmin creates and deletes its own topics.
type topicAdmin struct {
	h      *history
	next   engine.TopicID
	exists map[engine.TopicID]bool // whether a topic exists, by calls that returned
	open   engine.TopicID          // topic of a call that did not return
}

func newTopicAdmin(h *history) *topicAdmin {
	return &topicAdmin{h: h, next: freeTopics, exists: map[engine.TopicID]bool{}}
}

func (a *topicAdmin) step(rng *rand.Rand) {
	id, create := a.next, true
	for old, existing := range a.exists {
		if existing && rng.IntN(2) == 0 {
			id, create = old, false
		}
	}
	a.open = id
	var err error
	if create {
		a.next++
		err = a.h.e.CreateTopic(a.h.ctx, id, engine.TopicConfig{Partitions: 1})
	} else {
		err = a.h.e.DeleteTopic(a.h.ctx, id)
	}
	if !a.h.alive() {
		return
	}
	if err != nil {
		a.h.Errorf("topic %d: got error %v, want none", id, err)
	}
	a.exists[id], a.open = create, 0
}

func (a *topicAdmin) check() {
	a.h.Helper()
	ids, err := a.h.e.ListTopics(a.h.ctx, freeTopics-1, 10000)
	if err != nil {
		a.h.Fatalf("list: got error %v, want none", err)
	}
	existing := map[engine.TopicID]bool{}
	for _, id := range ids {
		existing[id] = true
	}
	for id, want := range a.exists {
		if id != a.open && existing[id] != want {
			a.h.Fatalf("topic %d exists: got %v, want %v", id, existing[id], want)
		}
	}
	for id := range existing {
		if _, known := a.exists[id]; !known && id != a.open {
			a.h.Fatalf("list: got topic %d, want no topic that was never created", id)
		}
	}
	if a.open != 0 {
		a.exists[a.open], a.open = existing[a.open], 0
	}
}
