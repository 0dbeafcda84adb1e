package store

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// objectLocks serializes the changes of each object, in the order of their arrival. Without it,
// changes would race in the store, and all but one of each round would start again: with many
// writers a change needs that many attempts, and some time out. Changes through another replica
// still race.
type objectLocks struct {
	mu      sync.Mutex // protects objects, and users of each
	objects map[string]*objectLock
}

// objectLock is the lock of one object; the call that put the token in holds it.
type objectLock struct {
	token chan struct{}
	users int // calls that hold the lock or wait for it
}

func newObjectLocks() *objectLocks { return &objectLocks{objects: map[string]*objectLock{}} }

// lock acquires the lock of the named object in the request's namespace, or returns the context's
// error. The caller releases it with unlock.
func (l *objectLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	key := request.NamespaceValue(ctx) + "/" + name
	held := l.join(key)
	select {
	case held.token <- struct{}{}:
		return func() { <-held.token; l.leave(key, held) }, nil
	case <-ctx.Done():
		l.leave(key, held)
		return nil, ctx.Err()
	}
}

func (l *objectLocks) join(key string) *objectLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, ok := l.objects[key]
	if !ok {
		held = &objectLock{token: make(chan struct{}, 1)}
		l.objects[key] = held
	}
	held.users++
	return held
}

func (l *objectLocks) leave(key string, held *objectLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held.users--; held.users == 0 {
		delete(l.objects, key)
	}
}
