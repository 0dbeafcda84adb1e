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

// maxSessions is how many browsers, and how many clients of each sort, somebody
// may be signed in with; the oldest one goes.
const maxSessions = 50

// Session is a browser in which somebody has signed in.
type Session struct {
	ID      string
	Subject Subject
	Display string // what to call them
	Begun   time.Time
	Ends    time.Time
}

// ErrNoSession says that nobody has signed in, or not lately.
var ErrNoSession = errs.New(errs.Unauthenticated, "nobody has signed in")

// BeginSession signs somebody in in a browser, which keeps the secret as a cookie.
func (s *Service) BeginSession(ctx context.Context, of Subject, method string) (*Session, identity.Secret, error) {
	display, alive := s.Alive(of)
	if !alive {
		return nil, identity.Secret{}, ErrNoSession
	}
	if err := s.makeRoom(ctx, of.UID, sessions); err != nil {
		return nil, identity.Secret{}, err
	}
	id, secret := newID(), identity.GenerateSecret()
	now := time.Now().UTC()
	record := session{
		Subject: of, Hash: hashOf(secret.Reveal()), Method: method, Begun: now,
		Ends: now.Add(s.opts.SessionLifetime),
	}
	if err := s.write(ctx, sessions+id, record, 0); err != nil {
		return nil, identity.Secret{}, err
	}
	cookie := identity.NewSecret(id + "." + secret.Reveal())
	return &Session{ID: id, Subject: of, Display: display, Begun: now, Ends: record.Ends}, cookie, nil
}

// makeRoom ends the oldest of what somebody has too much of.
func (s *Service) makeRoom(ctx context.Context, uid, sort string) error {
	type old struct {
		key   string
		begun time.Time
	}
	var list []old
	for _, key := range s.keysOf(uid) {
		if strings.HasPrefix(key, sort) {
			s.mu.Lock()
			h, _ := s.index.held.Get(key)
			s.mu.Unlock()
			list = append(list, old{key, h.begun})
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

// SessionOf finds the session that a cookie is of.
func (s *Service) SessionOf(ctx context.Context, cookie string) (*Session, error) {
	id, secret, ok := strings.Cut(cookie, ".")
	if !ok || len(cookie) > maxToken || !isID(id) {
		return nil, ErrNoSession
	}
	record, _, ok, err := read[session](ctx, s.opts.Store, sessions+id)
	if err != nil {
		return nil, err
	}
	if !ok || !same(record.Hash, secret) || !time.Now().Before(record.Ends) {
		return nil, ErrNoSession
	}
	display, alive := s.Alive(record.Subject)
	if !alive {
		return nil, ErrNoSession
	}
	return &Session{ID: id, Subject: record.Subject, Display: display, Begun: record.Begun, Ends: record.Ends}, nil
}

// EndSession signs somebody out of a browser, and of everything that was opened
// from it.
func (s *Service) EndSession(ctx context.Context, id string) error {
	return s.endTree(ctx, sessions+id)
}

// EndAll signs somebody out everywhere.
func (s *Service) EndAll(ctx context.Context, uid string) error {
	var problems []error
	for _, key := range s.keysOf(uid) {
		if !strings.HasPrefix(key, people) {
			problems = append(problems, s.drop(ctx, key))
		}
	}
	return errors.Join(problems...)
}

// endTree ends a session with its grants, the grants first: what is left over when
// the store fails is a session without them.
func (s *Service) endTree(ctx context.Context, key string) error {
	var problems []error
	for _, child := range s.keysOf(key) {
		problems = append(problems, s.drop(ctx, child))
	}
	return errors.Join(append(problems, s.drop(ctx, key))...)
}

// newID names a record that its owner may know.
func newID() string { return identity.GenerateSecret().Reveal()[:22] }

// isID keeps what is not one of ours out of the keys of the store.
func isID(text string) bool {
	return len(text) == 22 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// same compares a secret with its stored hash.
func same(hash, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(secret))) == 1
}
