package signin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"freshet/internal/identity"
)

// People manages the records of users: their credentials, and the end of a user.
type People struct {
	records  *indexedStore
	subjects *Subjects
	sessions *Sessions
	log      *slog.Logger
	wake     chan struct{} // notifies Service.Run of leaving

	mu      sync.Mutex // protects leaving
	leaving []string   // uids of users whose sessions Service.Run has to remove
}

func newPeople(records *indexedStore, subjects *Subjects, sessions *Sessions, log *slog.Logger) *People {
	return &People{records: records, subjects: subjects, sessions: sessions, log: log, wake: make(chan struct{}, 1)}
}

// OnChange registers f, which is called when the credentials of a user have changed.
func (s *People) OnChange(f func(organization, user string)) { s.records.onChange(f) }

// State describes how a user can sign in.
type State struct {
	Password bool
	Passkeys int
	Provider bool      // the OpenID provider is trusted for the e-mail address
	Invited  time.Time // expiry of the invitation link; zero without one
}

// StateOf returns the state of a user.
func (s *People) StateOf(uid, email string) State {
	state := State{Provider: s.subjects.trusts(email)}
	p, ok := s.records.entry(peoplePrefix + uid)
	if !ok || uid == "" || !identity.SameEmail(p.subject.Email, email) {
		return state
	}
	state.Password, state.Passkeys, state.Invited = p.password, p.passkeys, p.invited
	return state
}

// Credentials are the credentials of a user.
type Credentials struct {
	Password bool
	Passkeys []Passkey
}

// CredentialsOf returns the credentials of a user.
func (s *People) CredentialsOf(ctx context.Context, of Subject) (Credentials, error) {
	p, _, ok, err := read[person](ctx, s.records, peoplePrefix+of.UID)
	if err != nil || !ok || !identity.SameEmail(p.Subject.Email, of.Email) {
		return Credentials{}, err
	}
	return Credentials{Password: p.Password != "", Passkeys: p.Passkeys}, nil
}

// Bounds of the addresses that are kept for a user. An address of a user that signs in every day
// is written once in addressPrecision.
const (
	maxAddresses     = 16
	maxAddress       = 64 // characters
	addressPrecision = 24 * time.Hour
)

// RememberAddress remembers that a user with a password has signed in from an address.
func (s *People) RememberAddress(ctx context.Context, of Subject, address string) error {
	p, _, ok, err := read[person](ctx, s.records, peoplePrefix+of.UID)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if !ok || p.Password == "" || address == "" || len(address) > maxAddress || !p.addAddress(address, now) {
		return nil
	}
	return s.change(ctx, of, func(p *person) error {
		p.addAddress(address, now)
		return nil
	})
}

// addAddress adds an address, or renews it, and reports whether it has changed the record.
func (p *person) addAddress(address string, now time.Time) bool {
	at := slices.IndexFunc(p.Known, func(k knownAddress) bool { return k.Address == address })
	if at >= 0 {
		if now.Sub(p.Known[at].Used) < addressPrecision {
			return false
		}
		p.Known = slices.Delete(p.Known, at, at+1)
	}
	p.Known = slices.Insert(p.Known, 0, knownAddress{address, now})
	p.Known = p.Known[:min(len(p.Known), maxAddresses)]
	return true
}

// joinAddresses returns the known addresses in the form of the index.
func (p *person) joinAddresses() string {
	if len(p.Known) == 0 {
		return ""
	}
	var b strings.Builder
	for _, k := range p.Known {
		b.WriteString("\x00" + k.Address)
	}
	return b.String() + "\x00"
}

// knowsAddress reports whether a user has signed in from an address.
func (s *People) knowsAddress(of Subject, address string) bool {
	p, ok := s.records.entry(peoplePrefix + of.UID)
	return ok && address != "" && identity.SameEmail(p.subject.Email, of.Email) &&
		strings.Contains(p.known, "\x00"+address+"\x00")
}

// change changes the record of a user by compare and swap, and retries on conflicts.
func (s *People) change(ctx context.Context, of Subject, change func(*person) error) error {
	for {
		p, revision, ok, err := read[person](ctx, s.records, peoplePrefix+of.UID)
		if err != nil {
			return err
		}
		if !ok || !identity.SameEmail(p.Subject.Email, of.Email) {
			p = person{}
		}
		p.Subject, p.Begun = of, time.Now().UTC()
		if err := change(&p); err != nil {
			return err
		}
		if err := s.records.put(ctx, peoplePrefix+of.UID, p, revision); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// Forget ends every session and grant of a user that was deleted or has another address.
// The tokens do not work any more when it returns. Run removes the records soon after; if
// the process ends first, Load does so at the next start.
func (s *People) Forget(uid string) {
	for _, key := range s.records.keysOf(uid) {
		s.records.endTokens(key)
	}
	s.mu.Lock()
	s.leaving = append(s.leaving, uid)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // Run is already notified
	}
}

// forgetTimeout is the timeout for removing the records of one user.
const forgetTimeout = 10 * time.Second

// removeForgotten removes the records of the users for which Forget was called.
func (s *People) removeForgotten(ctx context.Context) {
	s.mu.Lock()
	leaving := s.leaving
	s.leaving = nil
	s.mu.Unlock()
	for _, uid := range leaving {
		ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
		err := s.sessions.endAll(ctx, uid)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.log.Warn("ended sessions cannot be removed from the store; the next sweep retries",
				slog.Any("error", err))
		}
	}
}

// forgetChanged ends the stored sessions and grants of users that were deleted or changed
// while the service was not running.
func (s *People) forgetChanged() {
	for _, of := range s.records.signedIn() {
		if _, alive := s.subjects.Alive(of); !alive {
			s.Forget(of.UID)
		}
	}
}
