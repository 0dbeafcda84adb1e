package identity

import (
	"sync"
	"sync/atomic"

	"freshet/internal/base/revision"
)

// Directory contains the accounts, users, sessions, API keys and instances that the
// verifier checks tokens against, all in memory.
//
// The write path of the resource store calls the Put and Delete methods after its commit
// and before it returns the response, so that a change is in force when the caller gets
// the response. Informers repeat the calls for changes of other replicas. Repeated and
// late calls are harmless: a deleted uid or key id never comes back, a revoked key stays
// revoked, and an older revision does not replace a newer one.
type Directory struct {
	mu         sync.RWMutex
	accounts   *revision.Map[name, *accountRecord]
	clients    map[string]*accountRecord
	keys       *revision.Map[string, *keyRecord]
	keyCount   map[name]int // stored keys by organization and instance
	expected   int          // number of keys that are not stored yet, see ExpectKey
	deletedUID *revision.Tombstones[string]
	users      *revision.Map[name, *userRecord]
	emails     map[string][]*userRecord // by emailKey
	sessions   map[string]*sessionRecord
	instances  map[name]Instance
	refusing   atomic.Pointer[map[name]struct{}] // instances that reject API keys; written under mu

	endedSessions *revision.Tombstones[string]
	loader        SessionLoader // nil: this server has all sessions; set before the directory is used
	current       func() bool   // nil: always current; set before the directory is used
}

// name addresses a namespaced resource.
type name struct{ organization, name string }

// tombstonesKept bounds the number of tombstones. Late events are seconds old, and this
// many deletions take minutes.
const tombstonesKept = 1 << 16

// NewDirectory returns an empty directory.
func NewDirectory() *Directory {
	d := &Directory{
		// Tombstones of accounts are by uid (deletedUID), not by name.
		accounts:   revision.NewMap[name, *accountRecord](0),
		clients:    make(map[string]*accountRecord),
		keys:       revision.NewMap[string, *keyRecord](tombstonesKept),
		keyCount:   make(map[name]int),
		deletedUID: revision.NewTombstones[string](tombstonesKept),
		instances:  make(map[name]Instance),
		users:      revision.NewMap[name, *userRecord](0), // tombstones are by uid, too
		emails:     make(map[string][]*userRecord),
		sessions:   make(map[string]*sessionRecord),

		endedSessions: revision.NewTombstones[string](tombstonesKept),
	}
	d.refusing.Store(&map[name]struct{}{})
	return d
}

// SetCurrentCheck sets a function that reports whether this server receives the changes of
// other replicas. While it returns false, the verifier rejects all tokens with
// ErrNotCurrent. It must be called before the directory is used. The function must not
// block or call the directory.
func (d *Directory) SetCurrentCheck(current func() bool) { d.current = current }

// Sessions returns the number of live sessions, for metrics.
func (d *Directory) Sessions() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.sessions)
}

// Len returns the number of accounts and keys, for metrics.
func (d *Directory) Len() (accounts, keys int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.accounts.Len(), d.keys.Len()
}
