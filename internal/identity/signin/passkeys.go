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
)

// Limits of passkeys.
const (
	maxPasskeys    = 10   // per user
	maxPasskeyName = 64   // characters
	maxPasskeyPart = 1023 // bytes of an id or public key; browsers create no longer ones
)

// Passkey is the public part of a user's passkey, with which signatures are checked. The
// private key never leaves the device.
type Passkey struct {
	ID     []byte    `json:"id"`
	Public []byte    `json:"public"` // COSE key
	Host   string    `json:"host"`   // the relying party ID: the host name of the server
	Name   string    `json:"name"`
	Count  uint32    `json:"count"`            // signature counter of the device; 0: it has none
	Synced bool      `json:"synced,omitempty"` // the device may sync it to other devices of the user
	Added  time.Time `json:"added"`
	Used   time.Time `json:"used,omitzero"`
}

// Errors of passkeys. Those for signing in do not reveal which users and passkeys exist.
var (
	ErrWrongPasskey  = errs.New(errs.Unauthenticated, "passkey is unknown, or belongs to another user")
	ErrPasskeyCloned = errs.New(errs.Unauthenticated, "signature counter of the passkey did not increase, so the "+
		"passkey may have been cloned; sign in another way and remove it")
	ErrChallengeUsed = errs.New(errs.Unauthenticated,
		"response of the passkey was used before, or took too long; try again")
	ErrPasskeyExists  = errs.New(errs.Conflict, "passkey already exists")
	ErrPasskeyMissing = errs.New(errs.NotFound, "passkey does not exist any more")
	ErrLastCredential = errs.New(errs.Conflict,
		"this is your only way to sign in; add another passkey first, or ask for an invitation to set a password")
	ErrManyPasskeys = errs.Newf(errs.Exhausted, "you have %d passkeys, which is the maximum; remove one first",
		maxPasskeys)
	ErrPasskeyInvalid = errs.Newf(errs.Invalid,
		"passkey is not valid; its name may have at most %d characters", maxPasskeyName)
)

// Passkeys manages the passkeys of users. Package passkey checks their signatures.
type Passkeys struct {
	records  *indexedStore
	subjects *Subjects
	people   *People
	links    *Links
	sessions *Sessions
}

// checkPasskey validates a new passkey, and sets a default name.
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

// AcceptPasskey consumes an invitation and sets the passkey of its user. The passkey
// replaces the password and all other passkeys, and all sessions of the user end.
func (s *Passkeys) AcceptPasskey(ctx context.Context, token string, key Passkey) (Subject, error) {
	key.Added = time.Now().UTC()
	if err := checkPasskey(&key); err != nil {
		return Subject{}, err
	}
	of, revision, err := s.links.invited(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	return of, s.links.accept(ctx, of, token, revision, func(p *person) { p.Passkeys = []Passkey{key} })
}

// AddPasskey adds a passkey to a user.
func (s *Passkeys) AddPasskey(ctx context.Context, of Subject, key Passkey) error {
	key.Added = time.Now().UTC()
	if err := checkPasskey(&key); err != nil {
		return err
	}
	if _, alive := s.subjects.Alive(of); !alive || of.User == "" {
		return ErrNoSession
	}
	return s.people.change(ctx, of, func(p *person) error {
		switch {
		case p.passkey(key.ID) >= 0:
			return ErrPasskeyExists
		case len(p.Passkeys) >= maxPasskeys:
			return ErrManyPasskeys
		}
		p.Passkeys = append(p.Passkeys, key)
		return nil
	})
}

// RemovePasskey removes a passkey, unless it is the only way to sign in. It ends all other
// sessions of the user, because the holder of the device may be signed in.
func (s *Passkeys) RemovePasskey(ctx context.Context, in *Session, id []byte) error {
	err := s.people.change(ctx, in.Subject, func(p *person) error {
		at := p.passkey(id)
		switch {
		case at < 0:
			return ErrPasskeyMissing
		case len(p.Passkeys) == 1 && p.Password == "" && !s.subjects.trusts(in.Subject.Email):
			return ErrLastCredential
		}
		p.Passkeys = slices.Delete(p.Passkeys, at, at+1)
		return nil
	})
	if err != nil {
		return err
	}
	return s.sessions.endOthers(ctx, in)
}

// PasskeysOf returns the user with a uid and the user's passkeys. The uid comes from the
// browser and proves nothing.
func (s *Passkeys) PasskeysOf(ctx context.Context, uid string) (Subject, []Passkey, error) {
	if uid == "" || len(uid) > maxToken || strings.Contains(uid, "/") {
		return Subject{}, nil, ErrWrongPasskey
	}
	p, _, ok, err := read[person](ctx, s.records, peoplePrefix+uid)
	if err != nil {
		return Subject{}, nil, err
	}
	if _, alive := s.subjects.Alive(p.Subject); !ok || !alive {
		return Subject{}, nil, ErrWrongPasskey
	}
	return p.Subject, p.Passkeys, nil
}

// UsePasskey records a use of a passkey with its signature counter. If the counter does not
// increase, the passkey may have been cloned.
func (s *Passkeys) UsePasskey(ctx context.Context, of Subject, id []byte, count uint32) error {
	return s.people.change(ctx, of, func(p *person) error {
		at := p.passkey(id)
		if at < 0 {
			return ErrWrongPasskey
		}
		key := &p.Passkeys[at]
		if count <= key.Count && (count != 0 || key.Count != 0) {
			return ErrPasskeyCloned
		}
		key.Count, key.Used = count, time.Now().UTC()
		return nil
	})
}

// UseChallenge consumes a challenge that a passkey has signed. Only one of several
// concurrent calls succeeds. The record is kept until the challenge expires.
func (s *Passkeys) UseChallenge(ctx context.Context, challenge string, until time.Time) error {
	if challenge == "" || !time.Now().Before(until) {
		return ErrChallengeUsed
	}
	err := s.records.put(ctx, challengesPrefix+hashOf(challenge), ends{Ends: until.UTC()}, 0)
	if errors.Is(err, ErrChanged) {
		return ErrChallengeUsed
	}
	return err
}

// passkey returns the index of a passkey, or -1.
func (p *person) passkey(id []byte) int {
	return slices.IndexFunc(p.Passkeys, func(k Passkey) bool { return bytes.Equal(k.ID, id) })
}
