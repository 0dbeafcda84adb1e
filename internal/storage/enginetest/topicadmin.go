package enginetest

import (
	"math/rand/v2"

	"freshet/internal/storage/engine"
)

// topicAdmin creates and deletes its own topics.
type topicAdmin struct {
	h    *history
	next engine.TopicID
	is   map[engine.TopicID]bool // whether a topic exists, by calls that returned
	open engine.TopicID          // topic of a call that did not return
}

func newTopicAdmin(h *history) *topicAdmin {
	return &topicAdmin{h: h, next: freeTopics, is: map[engine.TopicID]bool{}}
}

func (a *topicAdmin) step(rng *rand.Rand) {
	id, create := a.next, true
	for old, there := range a.is {
		if there && rng.IntN(2) == 0 {
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
	a.is[id], a.open = create, 0
}

func (a *topicAdmin) check() {
	a.h.Helper()
	ids, err := a.h.e.ListTopics(a.h.ctx, freeTopics-1, 10000)
	if err != nil {
		a.h.Fatalf("list: got error %v, want none", err)
	}
	there := map[engine.TopicID]bool{}
	for _, id := range ids {
		there[id] = true
	}
	for id, want := range a.is {
		if id != a.open && there[id] != want {
			a.h.Fatalf("topic %d exists: got %v, want %v", id, there[id], want)
		}
	}
	for id := range there {
		if _, known := a.is[id]; !known && id != a.open {
			a.h.Fatalf("list: got topic %d, want no topic that was never created", id)
		}
	}
	if a.open != 0 {
		a.is[a.open], a.open = there[a.open], 0
	}
}
