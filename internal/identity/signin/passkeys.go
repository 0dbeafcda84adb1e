package signin

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// The bounds of passkeys.
const (
	maxPasskeys    = 10   // of a person
	maxPasskeyName = 64   // characters
	maxPasskeyPart = 1023 // bytes of an id or public key; browsers make none longer
)

// Passkey is a key of a person that a device of theirs keeps: what is needed to
// check that it was used. The rest of it never leaves the device.
type Passkey struct {
	ID     []byte    `json:"id"`
	Public []byte    `json:"public"` // COSE key
	Host   string    `json:"host"`   // the name of the server that it is good at
	Name   string    `json:"name"`
	Count  uint32    `json:"count"`            // signatures, as the device counts; 0: it does not
	Synced bool      `json:"synced,omitempty"` // the device may hand it on to others of the same owner
	Added  time.Time `json:"added"`
	Used   time.Time `json:"used,omitzero"`
}

// Refusals. They do not tell what there is from what there is not.
var (
	ErrWrongPasskey  = errs.New(errs.Unauthenticated, "the passkey is not known here, or is somebody else's")
	ErrPasskeyCopied = errs.New(errs.Unauthenticated,
		"the passkey has been used elsewhere since, as a copy of it would: sign in otherwise and remove it")
	ErrChallengeUsed = errs.New(errs.Unauthenticated,
		"the answer of the passkey was used before, or took too long: try again")
	ErrPasskeyKnown = errs.New(errs.Conflict, "the passkey is there already")
	ErrPasskeyGone  = errs.New(errs.NotFound, "the passkey is not there any more")
	ErrLastWay      = errs.New(errs.Conflict,
		"this is your only way to sign in: add another passkey first, or ask for an invitation to set a password")
	ErrManyPasskeys = errs.Newf(errs.Exhausted, "you have %d passkeys, and more are not kept: remove one first",
		maxPasskeys)
	ErrPasskeyInvalid = errs.Newf(errs.Invalid,
		"the passkey is not one that can be kept: its name has at most %d characters", maxPasskeyName)
)

// checkPasskey says what is wrong with a new passkey, and names one without a name.
func checkPasskey(key *Passkey) error {
	key.Name = strings.TrimSpace(key.Name)
	if key.Name == "" {
		key.Name = "Passkey of " + key.Added.Format("2 January 2006")
	}
	if utf8.RuneCountInString(key.Name) > maxPasskeyName || !utf8.ValidString(key.Name) ||
		len(key.ID) == 0 || len(key.ID) > maxPasskeyPart || len(key.Public) == 0 || len(key.Public) > maxPasskeyPart {
		return ErrPasskeyInvalid
	}
	return nil
}

// AcceptPasskey uses an invitation up and gives whose it is the passkey, instead of
// every password and passkey that they had. Every session that they had ends.
func (s *Service) AcceptPasskey(ctx context.Context, token string, key Passkey) (Subject, error) {
	key.Added = time.Now().UTC()
	if err := checkPasskey(&key); err != nil {
		return Subject{}, err
	}
	of, revision, err := s.invited(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	return of, s.accept(ctx, of, token, revision, func(p *person) { p.Passkeys = []Passkey{key} })
}

// accept replaces all ways to sign in by the one that an invitation was used for.
func (s *Service) accept(ctx context.Context, of Subject, token string, revision int64, set func(*person)) error {
	if err := s.use(ctx, token, revision); err != nil {
		return err
	}
	err := s.changePerson(ctx, of, func(p *person) error {
		p.Password, p.Passkeys, p.Invitation = "", nil, invitation{}
		set(p)
		return nil
	})
	if err != nil {
		return err
	}
	return s.EndAll(ctx, of.UID)
}

// AddPasskey gives a person one more.
func (s *Service) AddPasskey(ctx context.Context, of Subject, key Passkey) error {
	key.Added = time.Now().UTC()
	if err := checkPasskey(&key); err != nil {
		return err
	}
	if _, alive := s.Alive(of); !alive || of.User == "" {
		return ErrNoSession
	}
	return s.changePerson(ctx, of, func(p *person) error {
		switch {
		case p.passkey(key.ID) >= 0:
			return ErrPasskeyKnown
		case len(p.Passkeys) >= maxPasskeys:
			return ErrManyPasskeys
		}
		p.Passkeys = append(p.Passkeys, key)
		return nil
	})
}

// RemovePasskey takes one away, unless nothing else lets the person in, and ends all
// other sessions: whoever has the device may be signed in.
func (s *Service) RemovePasskey(ctx context.Context, in *Session, id []byte) error {
	err := s.changePerson(ctx, in.Subject, func(p *person) error {
		at := p.passkey(id)
		switch {
		case at < 0:
			return ErrPasskeyGone
		case len(p.Passkeys) == 1 && p.Password == "" && !s.trusts(in.Subject.Email):
			return ErrLastWay
		}
		p.Passkeys = slices.Delete(p.Passkeys, at, at+1)
		return nil
	})
	if err != nil {
		return err
	}
	return s.endOthers(ctx, in)
}

// endOthers signs somebody out everywhere but in one browser.
func (s *Service) endOthers(ctx context.Context, in *Session) error {
	kept := s.keysOf(sessions + in.ID)
	var problems []error
	for _, key := range s.keysOf(in.Subject.UID) {
		if !strings.HasPrefix(key, people) && key != sessions+in.ID && !slices.Contains(kept, key) {
			problems = append(problems, s.drop(ctx, key))
		}
	}
	return errors.Join(problems...)
}

// Ways are what a person has to sign in with.
type Ways struct {
	Password bool
	Passkeys []Passkey
}

// WaysOf tells it of a person.
func (s *Service) WaysOf(ctx context.Context, of Subject) (Ways, error) {
	p, _, ok, err := read[person](ctx, s.opts.Store, people+of.UID)
	if err != nil || !ok || !identity.SameEmail(p.Subject.Email, of.Email) {
		return Ways{}, err
	}
	return Ways{Password: p.Password != "", Passkeys: p.Passkeys}, nil
}

// PasskeysOf finds the person whom a passkey names as its owner, with what they have.
// Nothing is proved by that.
func (s *Service) PasskeysOf(ctx context.Context, uid string) (Subject, []Passkey, error) {
	if uid == "" || len(uid) > maxToken || strings.Contains(uid, "/") {
		return Subject{}, nil, ErrWrongPasskey
	}
	p, _, ok, err := read[person](ctx, s.opts.Store, people+uid)
	if err != nil {
		return Subject{}, nil, err
	}
	if _, alive := s.Alive(p.Subject); !ok || !alive {
		return Subject{}, nil, ErrWrongPasskey
	}
	return p.Subject, p.Passkeys, nil
}

// Is says whether a person is who somebody types: organization, and name or address.
func (s *Service) Is(of Subject, organization, who string) bool {
	found, ok := s.find(organization, who)
	return ok && found.UID == of.UID
}

// UsePasskey notes that a passkey has signed, and how often it has by its own count.
// One whose count does not grow may be a copy.
func (s *Service) UsePasskey(ctx context.Context, of Subject, id []byte, count uint32) error {
	return s.changePerson(ctx, of, func(p *person) error {
		at := p.passkey(id)
		if at < 0 {
			return ErrWrongPasskey
		}
		key := &p.Passkeys[at]
		if count <= key.Count && (count != 0 || key.Count != 0) {
			return ErrPasskeyCopied
		}
		key.Count, key.Used = count, time.Now().UTC()
		return nil
	})
}

// UseChallenge uses a challenge up that a passkey has answered; of several who try,
// one succeeds. It is kept until it would have ended by itself.
func (s *Service) UseChallenge(ctx context.Context, challenge string, until time.Time) error {
	if challenge == "" || !time.Now().Before(until) {
		return ErrChallengeUsed
	}
	err := s.write(ctx, challenges+hashOf(challenge), ends{Ends: until.UTC()}, 0)
	if errors.Is(err, ErrChanged) {
		return ErrChallengeUsed
	}
	return err
}

// passkey is where a person has one; -1: they have not.
func (p *person) passkey(id []byte) int {
	return slices.IndexFunc(p.Passkeys, func(k Passkey) bool { return bytes.Equal(k.ID, id) })
}

// trusts says whether a provider elsewhere may vouch for an address.
func (s *Service) trusts(email string) bool { return s.opts.Trusts != nil && s.opts.Trusts(email) }
