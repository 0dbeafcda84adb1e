package signin

import (
	"context"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Limits of the length of a password. There are no rules about its characters, because the
// length makes it hard to guess.
const (
	MinPassword = 10 // characters
	maxPassword = 256
)

// ErrWrongPassword is the error of Authenticate. It does not reveal which users exist.
var ErrWrongPassword = errs.New(errs.Unauthenticated, "organization, name or password is wrong")

// Errors for a new password.
var (
	ErrPasswordShort     = errs.Newf(errs.Invalid, "password is too short; use at least %d characters", MinPassword)
	ErrPasswordLong      = errs.Newf(errs.Invalid, "password is too long; use at most %d characters", maxPassword)
	ErrPasswordGuessable = errs.New(errs.Invalid, "password is your e-mail address or name; use another one")
)

// checkPassword validates a new password of a user.
func checkPassword(password string, of Subject) error {
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return ErrPasswordShort
	case n > maxPassword || !utf8.ValidString(password):
		return ErrPasswordLong
	case strings.EqualFold(password, of.Email), strings.EqualFold(password, of.User):
		return ErrPasswordGuessable
	}
	return nil
}

// Passwords sets and checks the passwords of users.
type Passwords struct {
	records  *indexedStore
	subjects *Subjects
	people   *People
	links    *Links
	hasher   *hasher
}

func newPasswords(records *indexedStore, subjects *Subjects, people *People, links *Links) *Passwords {
	return &Passwords{
		records: records, subjects: subjects, people: people, links: links,
		hasher: newHasher(max(1, runtime.GOMAXPROCS(0)/2)),
	}
}

// find returns the user with a name or e-mail address. Several users may have the same e-mail
// address, or one has the e-mail address of another as its name. Then find returns the user
// who has had a password for the longest time, so that no user can take the address of another.
func (s *Passwords) find(organization, name string) (Subject, bool) {
	candidates := s.subjects.candidates(organization, name)
	var found Subject
	var since time.Time
	for _, of := range candidates {
		p, ok := s.records.entry(peoplePrefix + of.UID)
		if !ok || !p.password || !identity.SameEmail(p.subject.Email, of.Email) {
			continue
		}
		if found.UID == "" || p.since.Before(since) {
			found, since = of, p.since
		}
	}
	if found.UID == "" && len(candidates) == 1 {
		return candidates[0], true
	}
	return found, found.UID != ""
}

// KnowsAddress reports whether the user with a name or e-mail address has signed in from an
// address before. It also returns the uid of the user.
func (s *Passwords) KnowsAddress(organization, name, address string) (uid string, known bool) {
	of, ok := s.find(organization, name)
	return of.UID, ok && s.people.knowsAddress(of, address)
}

// Authenticate returns the user with a password. For an unknown user, or one without a
// password, it does the same work as for a wrong password, so that the response time does
// not reveal which users exist. Callers at an address from which the user has signed in before
// do not wait for others.
func (s *Passwords) Authenticate(ctx context.Context, address, organization, name, password string,
) (Subject, error) {
	of, known := s.find(organization, name)
	stored := ""
	key := peoplePrefix + of.UID
	if !known {
		key = peoplePrefix + "none" // for the same number of calls of the store
	}
	p, _, ok, err := read[person](ctx, s.records, key)
	if err != nil {
		return Subject{}, err
	}
	if ok && known && identity.SameEmail(p.Subject.Email, of.Email) {
		stored = p.Password
	}
	right, err := s.hasher.check(ctx, stored, password, known && s.people.knowsAddress(of, address))
	if err != nil {
		return Subject{}, err
	}
	if _, alive := s.subjects.Alive(of); !right || !alive {
		return of, ErrWrongPassword
	}
	return of, nil
}

// Accept consumes an invitation and sets the password of its user. The password replaces
// the old one and all passkeys, and all sessions of the user end, because an invitation is
// also the way to replace leaked credentials.
func (s *Passwords) Accept(ctx context.Context, token, password string) (Subject, error) {
	of, revision, err := s.links.invited(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	if err := checkPassword(password, of); err != nil {
		return Subject{}, err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return Subject{}, err
	}
	return of, s.links.accept(ctx, of, token, revision, func(p *person) { p.Password = hash })
}
