package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Methods of authentication, in records and metrics.
const (
	MethodPassword   = "password"
	MethodPasskey    = "passkey"
	MethodInvitation = "invitation"
	MethodLink       = "link"
	MethodProvider   = "openid"
)

// maxSessions is the maximum number of browser sessions, and of grants, per user. A new one
// ends the oldest.
const maxSessions = 50

// Session is a browser session.
type Session struct {
	ID      string
	Subject Subject
	Display string // display name of the user
	Begun   time.Time
	Ends    time.Time
}

// ErrNoSession is the error for a missing or expired browser session.
var ErrNoSession = errs.New(errs.Unauthenticated, "browser is not signed in")

// Sessions manages browser sessions, and ends them together with their grants.
type Sessions struct {
	records  *indexedStore
	subjects *Subjects
	lifetime time.Duration
}

// BeginSession starts a browser session and returns its cookie.
func (s *Sessions) BeginSession(ctx context.Context, of Subject, method string) (*Session, identity.Secret, error) {
	display, alive := s.subjects.Alive(of)
	if !alive {
		return nil, identity.Secret{}, ErrNoSession
	}
	if err := s.endOldest(ctx, of.UID, sessionsPrefix); err != nil {
		return nil, identity.Secret{}, err
	}
	id, secret := newID(), identity.GenerateSecret()
	now := time.Now().UTC()
	record := session{
		Subject: of, Hash: hashOf(secret.Reveal()), Method: method, Begun: now,
		Ends: now.Add(s.lifetime),
	}
	if err := s.records.put(ctx, sessionsPrefix+id, record, 0); err != nil {
		return nil, identity.Secret{}, err
	}
	cookie := identity.NewSecret(id + "." + secret.Reveal())
	return &Session{ID: id, Subject: of, Display: display, Begun: now, Ends: record.Ends}, cookie, nil
}

// endOldest ends the oldest sessions or grants of a user if there are too many.
func (s *Sessions) endOldest(ctx context.Context, uid, sort string) error {
	type old struct {
		key   string
		begun time.Time
	}
	var list []old
	for _, key := range s.records.keysOf(uid) {
		if strings.HasPrefix(key, sort) {
			entry, _ := s.records.entry(key)
			list = append(list, old{key, entry.begun})
		}
	}
	if len(list) < maxSessions {
		return nil
	}
	slices.SortFunc(list, func(a, b old) int { return a.begun.Compare(b.begun) })
	for _, o := range list[:len(list)-maxSessions+1] {
		if err := s.endTree(ctx, o.key); err != nil {
			return err
		}
	}
	return nil
}

// SessionOf returns the session of a cookie.
func (s *Sessions) SessionOf(ctx context.Context, cookie string) (*Session, error) {
	id, secret, ok := strings.Cut(cookie, ".")
	if !ok || len(cookie) > maxToken || !isID(id) {
		return nil, ErrNoSession
	}
	record, _, ok, err := read[session](ctx, s.records, sessionsPrefix+id)
	if err != nil {
		return nil, err
	}
	if !ok || !matchesHash(record.Hash, secret) || !time.Now().Before(record.Ends) {
		return nil, ErrNoSession
	}
	display, alive := s.subjects.Alive(record.Subject)
	if !alive {
		return nil, ErrNoSession
	}
	return &Session{ID: id, Subject: record.Subject, Display: display, Begun: record.Begun, Ends: record.Ends}, nil
}

// EndSession ends a browser session and all its grants.
func (s *Sessions) EndSession(ctx context.Context, id string) error {
	return s.endTree(ctx, sessionsPrefix+id)
}

// endAll ends all sessions and grants of a user.
func (s *Sessions) endAll(ctx context.Context, uid string) error {
	return s.endEach(ctx, uid, func(key string) bool { return strings.HasPrefix(key, peoplePrefix) })
}

// endOthers ends all sessions and grants of a user except for one browser session. It also ends
// the devices that this session has confirmed and that have no grant yet, as it ends the grants
// of devices.
func (s *Sessions) endOthers(ctx context.Context, in *Session) error {
	kept := s.records.keysOf(sessionsPrefix + in.ID)
	return s.endEach(ctx, in.Subject.UID, func(key string) bool {
		return strings.HasPrefix(key, peoplePrefix) || key == sessionsPrefix+in.ID ||
			slices.Contains(kept, key) && !strings.HasPrefix(key, devicesPrefix)
	})
}

// endEach ends the records of a user except for those that keep selects. It repeats the search
// once, because a device or code may have got its grant while the sessions were being ended.
func (s *Sessions) endEach(ctx context.Context, uid string, keep func(key string) bool) error {
	var problems []error
	for range 2 {
		for _, key := range s.records.keysOf(uid) {
			if !keep(key) {
				problems = append(problems, s.records.delete(ctx, key))
			}
		}
	}
	return errors.Join(problems...)
}

// endTree ends a session with its grants and the devices that it has confirmed. It ends these
// first, so that a failure of the store leaves a session without grants and not the reverse.
func (s *Sessions) endTree(ctx context.Context, key string) error {
	var problems []error
	for _, child := range s.records.keysOf(key) {
		problems = append(problems, s.records.delete(ctx, child))
	}
	return errors.Join(append(problems, s.records.delete(ctx, key))...)
}

// newID returns a random id of a session or grant. It is not a secret.
func newID() string { return identity.GenerateSecret().Reveal()[:22] }

// isID reports whether text has the form of newID, so that it can be part of a key.
func isID(text string) bool {
	return len(text) == 22 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// matchesHash compares a secret with its stored hash.
func matchesHash(hash, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(secret))) == 1
}
