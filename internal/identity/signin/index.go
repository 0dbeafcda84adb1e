package signin

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/revision"
	"freshet/internal/identity"
)

// index contains the records of people, sessions, grants and confirmed devices in memory, and
// which of them belong to a user or a session.
type index struct {
	entries *revision.Map[string, indexEntry]
	byOwner map[string]map[string]struct{} // keys of records by uid, or by key of a session
}

// indexEntry is the part of a record that is kept in memory.
type indexEntry struct {
	subject Subject
	session string // for a grant and a confirmed device: the key of its session
	begun   time.Time
	ends    time.Time

	password bool // the fields below are for people
	passkeys int
	invited  time.Time
	since    time.Time
	known    string // the known addresses, each in \x00
}

const tombstonesKept = 1 << 16

func newIndex() index {
	return index{
		entries: revision.NewMap[string, indexEntry](tombstonesKept),
		byOwner: make(map[string]map[string]struct{}),
	}
}

func (x *index) link(to, key string) {
	if to == "" {
		return
	}
	set := x.byOwner[to]
	if set == nil {
		set = make(map[string]struct{})
		x.byOwner[to] = set
	}
	set[key] = struct{}{}
}

func (x *index) unlink(from, key string) {
	delete(x.byOwner[from], key)
	if len(x.byOwner[from]) == 0 {
		delete(x.byOwner, from)
	}
}

// apply updates the index and the directory with a stored record; value is nil for a
// deleted one. Late and repeated reports have no effect.
func (s *indexedStore) apply(key string, value []byte, revision int64) {
	if !strings.HasPrefix(key, peoplePrefix) && !strings.HasPrefix(key, sessionsPrefix) &&
		!strings.HasPrefix(key, grantsPrefix) && !strings.HasPrefix(key, devicesPrefix) {
		return // records of this kind are only read by their secret
	}
	if value == nil {
		s.applyDeletion(key, revision)
		return
	}
	var next indexEntry
	switch {
	case strings.HasPrefix(key, peoplePrefix):
		var p person
		if !s.decode(key, value, &p) {
			return
		}
		next = indexEntry{
			subject: p.Subject, password: p.Password != "", passkeys: len(p.Passkeys),
			invited: p.Invitation.Ends, since: p.Since, known: p.joinAddresses(),
		}
	case strings.HasPrefix(key, sessionsPrefix):
		var b session
		if !s.decode(key, value, &b) {
			return
		}
		next = indexEntry{subject: b.Subject, begun: b.Begun, ends: b.Ends}
	case strings.HasPrefix(key, devicesPrefix):
		var d device
		if !s.decode(key, value, &d) || d.Session == "" {
			return // not confirmed, so it belongs to nobody
		}
		next = indexEntry{subject: d.Subject, begun: d.Begun, ends: d.Ends, session: sessionsPrefix + d.Session}
	default:
		var g grant
		if !s.decode(key, value, &g) {
			return
		}
		next = indexEntry{subject: g.Subject, begun: g.Begun, ends: g.Ends}
		if g.Session != "" {
			next.session = sessionsPrefix + g.Session
		}
	}
	s.applyRecord(key, next, revision)
}

func (s *indexedStore) decode(key string, value []byte, into any) bool {
	if err := json.Unmarshal(value, into); err != nil {
		s.log.Error("stored sign-in record is damaged; skipping it", slog.String("sort", kindOf(key)))
		return false
	}
	return true
}

func (s *indexedStore) applyRecord(key string, next indexEntry, revision int64) {
	s.mu.Lock()
	was, known := s.index.entries.Get(key)
	if !s.index.entries.Put(key, revision, next) {
		s.mu.Unlock()
		return
	}
	s.index.link(next.subject.UID, key)
	s.index.link(next.session, key)
	s.mu.Unlock()
	switch {
	case strings.HasPrefix(key, grantsPrefix):
		s.directory.PutSession(next.identity(key))
	case strings.HasPrefix(key, peoplePrefix) && (!known || was.changedCredentials(next)):
		s.notifyChange(next.subject)
	}
}

// changedCredentials reports whether two entries of a user differ in more than the addresses.
func (h indexEntry) changedCredentials(next indexEntry) bool {
	h.known, next.known = "", ""
	return h != next
}

func (s *indexedStore) applyDeletion(key string, revision int64) {
	s.mu.Lock()
	was, known := s.index.entries.Get(key)
	s.index.entries.Delete(key, revision)
	if known {
		s.index.unlink(was.subject.UID, key)
		s.index.unlink(was.session, key)
	}
	s.mu.Unlock()
	if id, ok := strings.CutPrefix(key, grantsPrefix); ok {
		s.directory.EndSession(id)
	}
	if known && strings.HasPrefix(key, peoplePrefix) {
		s.notifyChange(was.subject)
	}
}

// endTokens ends the session of a grant in the directory of this process, so that its tokens
// stop working.
func (s *indexedStore) endTokens(key string) {
	if id, ok := strings.CutPrefix(key, grantsPrefix); ok {
		s.directory.EndSession(id)
	}
}

// entry returns the entry of a key; ok is false if the index does not contain it.
func (s *indexedStore) entry(key string) (entry indexEntry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.entries.Get(key)
}

// signedIn returns the subjects of all sessions and grants.
func (s *indexedStore) signedIn() []Subject {
	s.mu.Lock()
	defer s.mu.Unlock()
	var subjects []Subject
	for key, entry := range s.index.entries.All() {
		if !strings.HasPrefix(key, peoplePrefix) {
			subjects = append(subjects, entry.subject)
		}
	}
	return subjects
}

// keysOf returns the keys of the records of a uid, or of the grants and devices of a session.
func (s *indexedStore) keysOf(of string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.index.byOwner[of]))
}

func (h *indexEntry) identity(key string) identity.Session {
	return sessionOf(strings.TrimPrefix(key, grantsPrefix), h.subject, h.ends)
}

func (g *grant) identity(id string) identity.Session { return sessionOf(id, g.Subject, g.Ends) }

func sessionOf(id string, of Subject, ends time.Time) identity.Session {
	return identity.Session{
		ID: id, Organization: of.Organization, User: of.User, Account: of.Account,
		UID: of.UID, Email: of.Email, ClientID: of.ClientID, Ends: ends,
	}
}
