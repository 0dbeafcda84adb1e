package store

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// objectLocks lets the changes of one object happen one after the other, in the
// order they came. The store would let them race, and all but one of each round
// begin anew: with many writers a change costs that many attempts, and the
// unlucky ones run out of time. Changes that come through another replica still
// race.
type objectLocks struct {
	mu      sync.Mutex // guards objects, and users of each
	objects map[string]*objectLock
}

// objectLock is the lock of one object; whoever put the token in holds it.
type objectLock struct {
	token chan struct{}
	users int // who hold the lock or wait for it
}

func newObjectLocks() *objectLocks { return &objectLocks{objects: map[string]*objectLock{}} }

// lock waits until nobody else changes the object of the request's namespace,
// and returns holding its lock, for the caller to unlock.
func (l *objectLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	key := request.NamespaceValue(ctx) + "/" + name
	mine := l.join(key)
	select {
	case mine.token <- struct{}{}:
		return func() { <-mine.token; l.leave(key, mine) }, nil
	case <-ctx.Done():
		l.leave(key, mine)
		return nil, ctx.Err()
	}
}

func (l *objectLocks) join(key string) *objectLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine, ok := l.objects[key]
	if !ok {
		mine = &objectLock{token: make(chan struct{}, 1)}
		l.objects[key] = mine
	}
	mine.users++
	return mine
}

func (l *objectLocks) leave(key string, mine *objectLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.objects, key)
	}
}
