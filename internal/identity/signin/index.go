package signin

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"freshet/internal/identity"
)

// apply updates the index and the directory with a stored record; value is nil for a
// deleted one. Late and repeated reports have no effect.
func (s *Service) apply(key string, value []byte, revision int64) {
	if !strings.HasPrefix(key, peoplePrefix) && !strings.HasPrefix(key, sessionsPrefix) &&
		!strings.HasPrefix(key, grantsPrefix) {
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
			invited: p.Invitation.Ends,
		}
	case strings.HasPrefix(key, sessionsPrefix):
		var b session
		if !s.decode(key, value, &b) {
			return
		}
		next = indexEntry{subject: b.Subject, begun: b.Begun, ends: b.Ends}
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

func (s *Service) decode(key string, value []byte, into any) bool {
	if err := json.Unmarshal(value, into); err != nil {
		s.opts.Log.Error("stored sign-in record is damaged; skipping it", slog.String("sort", kindOf(key)))
		return false
	}
	return true
}

func (s *Service) applyRecord(key string, next indexEntry, revision int64) {
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
		s.opts.Directory.PutSession(next.identity(key))
	case strings.HasPrefix(key, peoplePrefix) && (!known || was != next):
		s.notifyChange(next.subject)
	}
}

func (s *Service) applyDeletion(key string, revision int64) {
	s.mu.Lock()
	was, known := s.index.entries.Get(key)
	s.index.entries.Delete(key, revision)
	if known {
		s.index.unlink(was.subject.UID, key)
		s.index.unlink(was.session, key)
	}
	s.mu.Unlock()
	if id, ok := strings.CutPrefix(key, grantsPrefix); ok {
		s.opts.Directory.EndSession(id)
	}
	if known && strings.HasPrefix(key, peoplePrefix) {
		s.notifyChange(was.subject)
	}
}

// endTokens ends the session of a grant in the directory of this process, so that its tokens
// stop working.
func (s *Service) endTokens(key string) {
	if id, ok := strings.CutPrefix(key, grantsPrefix); ok {
		s.opts.Directory.EndSession(id)
	}
}

// removable reports whether a record can be removed: it has expired, or its user, account or
// session does not exist any more.
func (s *Service) removable(key string, value []byte, now time.Time) bool {
	if strings.HasPrefix(key, peoplePrefix) {
		var p person
		if json.Unmarshal(value, &p) != nil {
			return false // kept, so that an operator can inspect the damaged record
		}
		return s.isOrphan(p.Subject, p.Begun, now) || p.Password == "" && len(p.Passkeys) == 0 &&
			!now.Before(p.Invitation.Ends)
	}
	var e ends
	if json.Unmarshal(value, &e) != nil || e.Ends.IsZero() {
		return false
	}
	if !now.Before(e.Ends) {
		return true
	}
	var of struct {
		Subject Subject   `json:"subject"`
		Session string    `json:"session"`
		Begun   time.Time `json:"begun"`
	}
	if json.Unmarshal(value, &of) != nil || of.Subject == (Subject{}) {
		return false
	}
	return s.isOrphan(of.Subject, of.Begun, now) || of.Session != "" && now.Sub(of.Begun) > propagationDelay &&
		!s.hasRecord(sessionsPrefix+of.Session)
}

// propagationDelay is longer than a change of another replica takes to reach this one.
const propagationDelay = 10 * time.Minute

// isOrphan reports whether the subject of a record does not exist any more. A recent record
// is not an orphan, because its subject may not have reached this replica yet.
func (s *Service) isOrphan(of Subject, begun, now time.Time) bool {
	_, alive := s.Alive(of)
	return !alive && now.Sub(begun) > propagationDelay
}

func (s *Service) hasRecord(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.index.entries.Get(key)
	return ok
}

// keysOf returns the keys of the records of a uid, or of the grants of a session.
func (s *Service) keysOf(of string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.index.byOwner[of]))
}

// Alive reports whether a subject still exists with the same uid, address and credentials,
// and returns its display name.
func (s *Service) Alive(of Subject) (display string, ok bool) {
	if of.Account != "" {
		account, ok := s.opts.Directory.Account(of.Organization, of.Account)
		if !ok || account.UID != of.UID || !account.Accepts(of.ClientID) {
			return "", false
		}
		if account.System {
			return "System administrator", true
		}
		return account.Name, true
	}
	user, ok := s.opts.Directory.User(of.Organization, of.User)
	if !ok || user.UID != of.UID || user.Barred || !identity.SameEmail(user.Email, of.Email) {
		return "", false
	}
	if user.DisplayName != "" {
		return user.DisplayName, true
	}
	return user.Email, true
}

// State describes how a user can sign in.
type State struct {
	Password bool
	Passkeys int
	Provider bool      // the OpenID provider is trusted for the e-mail address
	Invited  time.Time // expiry of the invitation link; zero without one
}

// StateOf returns the state of a user.
func (s *Service) StateOf(uid, email string) State {
	state := State{Provider: s.trusts(email)}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.index.entries.Get(peoplePrefix + uid)
	if !ok || uid == "" || !identity.SameEmail(p.subject.Email, email) {
		return state
	}
	state.Password, state.Passkeys, state.Invited = p.password, p.passkeys, p.invited
	return state
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
