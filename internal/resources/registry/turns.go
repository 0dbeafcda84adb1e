package registry

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// turns lets the changes of one object happen one after the other, in the order
// they came. The store would let them race, and all but one of each round begin
// anew: with many writers a change costs that many attempts, and the unlucky
// ones run out of time. Changes that come through another replica still race.
type turns struct {
	mu      sync.Mutex
	objects map[string]*turn
}

// turn is the place in front of one object; whoever put the token in may change it.
type turn struct {
	token chan struct{}
	users int // who have the turn or wait for it
}

func newTurns() *turns { return &turns{objects: map[string]*turn{}} }

// take waits until nobody else changes the object of the request's namespace.
// The caller ends its turn with the function it gets.
func (t *turns) take(ctx context.Context, name string) (end func(), err error) {
	key := request.NamespaceValue(ctx) + "/" + name
	mine := t.join(key)
	select {
	case mine.token <- struct{}{}:
		return func() { <-mine.token; t.leave(key, mine) }, nil
	case <-ctx.Done():
		t.leave(key, mine)
		return nil, ctx.Err()
	}
}

func (t *turns) join(key string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine, ok := t.objects[key]
	if !ok {
		mine = &turn{token: make(chan struct{}, 1)}
		t.objects[key] = mine
	}
	mine.users++
	return mine
}

func (t *turns) leave(key string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(t.objects, key)
	}
}
