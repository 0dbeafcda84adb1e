package identity

import (
	"sync"
	"sync/atomic"

	"freshet/internal/base/revision"
)

// Directory is the truth about accounts, people, their sessions, API keys and instances that the verifier
// consults, all in memory. The resource store's write path calls its Put and
// Delete methods after its commit and before it answers, so that a change is in
// force when the caller hears of it; informers repeat the same calls for
// changes made by other replicas. Repeats and late arrivals are harmless: a
// deleted uid or key id never comes back, a revoked key stays revoked, and an
// older revision does not replace a newer one.
type Directory struct {
	mu         sync.RWMutex
	accounts   *revision.Map[name, *accountRecord]
	clients    map[string]*accountRecord
	keys       *revision.Map[string, *keyRecord]
	keyCount   map[name]int // organization and instance → keys that are stored
	expected   int          // keys that are not stored yet
	deletedUID *revision.Tombstones[string]
	users      *revision.Map[name, *userRecord]
	emails     map[string][]*userRecord // by emailKey
	sessions   map[string]*sessionRecord
	instances  map[name]Instance
	refusing   atomic.Pointer[map[name]struct{}] // instances that accept no API keys; written under mu

	endedSessions *revision.Tombstones[string]
	loader        SessionLoader // nil: all sessions are known; set before the directory is used
	current       func() bool   // nil: always; set before the directory is used
}

// name addresses a namespaced resource.
type name struct{ organization, name string }

// tombstonesKept bounds the memory of the deleted; late events are seconds
// old, and this many deletions take minutes.
const tombstonesKept = 1 << 16

// NewDirectory makes an empty directory.
func NewDirectory() *Directory {
	d := &Directory{
		// Deletions of accounts are remembered by uid, not by name.
		accounts:   revision.NewMap[name, *accountRecord](0),
		clients:    make(map[string]*accountRecord),
		keys:       revision.NewMap[string, *keyRecord](tombstonesKept),
		keyCount:   make(map[name]int),
		deletedUID: revision.NewTombstones[string](tombstonesKept),
		instances:  make(map[name]Instance),
		users:      revision.NewMap[name, *userRecord](0), // deletions by uid, too
		emails:     make(map[string][]*userRecord),
		sessions:   make(map[string]*sessionRecord),

		endedSessions: revision.NewTombstones[string](tombstonesKept),
	}
	d.refusing.Store(&map[name]struct{}{})
	return d
}

// AskCurrent makes the directory's word good only while current says that it hears of
// what other replicas change. It is called before the directory is used.
func (d *Directory) AskCurrent(current func() bool) { d.current = current }

// Sessions counts the sessions that tokens can be good for, for metrics.
func (d *Directory) Sessions() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.sessions)
}

// Len counts accounts and keys, for metrics.
func (d *Directory) Len() (accounts, keys int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.accounts.Len(), d.keys.Len()
}
