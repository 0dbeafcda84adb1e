package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"freshet/internal/base/errs"
)

// The bounds of a password. There are no rules on what is in it: length is what
// makes it hard to guess.
const (
	MinPassword = 10 // characters
	maxPassword = 256
)

// What argon2id costs: about 20 ms and 19 MiB, the least that is recommended for
// servers, since everybody who can reach the server can have it computed.
const (
	argonTime    = 2
	argonMemory  = 19 << 10 // KiB
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// What can be wrong with a password that somebody sets.
var (
	ErrPasswordShort = errs.Newf(errs.Invalid, "the password is too short: use at least %d characters", MinPassword)
	ErrPasswordLong  = errs.Newf(errs.Invalid, "the password is too long: use at most %d characters", maxPassword)
	ErrPasswordKnown = errs.New(errs.Invalid, "the password is your e-mail address or name: use another")
)

// CheckPassword says what is wrong with a new password of somebody.
func CheckPassword(password string, of Subject) error {
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return ErrPasswordShort
	case n > maxPassword || !utf8.ValidString(password):
		return ErrPasswordLong
	case strings.EqualFold(password, of.Email), strings.EqualFold(password, of.User):
		return ErrPasswordKnown
	}
	return nil
}

// ErrBusy is what callers get when too many passwords are looked at already.
var ErrBusy = errs.New(errs.Unavailable, "too many people are signing in at the moment: try again in a few seconds")

// hasher makes and checks hashes of passwords, a few at a time: each takes a core
// and memory.
type hasher struct {
	working chan struct{}
	waiting chan struct{}
	decoy   string // of no password, for people who have none
	hashed  atomic.Int64
}

// waitingPerCore is how many may wait for each that is at work: about two seconds.
const waitingPerCore = 64

func newHasher(cores int) *hasher {
	h := &hasher{working: make(chan struct{}, cores), waiting: make(chan struct{}, cores*waitingPerCore)}
	salt := random(argonSalt)
	h.decoy = format(salt, random(argonKey))
	return h
}

// enter waits for a place.
func (h *hasher) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.waiting <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	defer func() { <-h.waiting }()
	select {
	case h.working <- struct{}{}:
		h.hashed.Add(1)
		return func() { <-h.working }, nil
	case <-ctx.Done():
		return nil, errs.Newf(errs.Unavailable, "waiting to look at a password: %w", context.Cause(ctx))
	}
}

// hash makes the form in which a password is stored.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	salt := random(argonSalt)
	return format(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)), nil
}

// check compares a password with a stored form. Without one it does the same work
// and says no.
func (h *hasher) check(ctx context.Context, stored, password string) (bool, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	known := stored != ""
	if !known {
		stored = h.decoy
	}
	var memory, time uint32
	var threads uint8
	var salt, want string
	form := strings.NewReplacer("$", " ").Replace(stored)
	if _, err := fmt.Sscanf(form, " argon2id v=19 m=%d,t=%d,p=%d %s %s", &memory, &time, &threads, &salt,
		&want); err != nil {
		return false, errs.New(errs.Internal, "a stored password is damaged")
	}
	rawSalt, err := base64.RawStdEncoding.DecodeString(salt)
	if err != nil {
		return false, errs.New(errs.Internal, "a stored password is damaged")
	}
	rawWant, err := base64.RawStdEncoding.DecodeString(want)
	if err != nil || len(rawWant) == 0 || memory > 1<<20 || time > 16 {
		return false, errs.New(errs.Internal, "a stored password is damaged")
	}
	if len(password) > 4*maxPassword {
		password = "" // nobody has one so long; as much work as any other
	}
	got := argon2.IDKey([]byte(password), rawSalt, time, memory, threads, uint32(len(rawWant)))
	return subtle.ConstantTimeCompare(got, rawWant) == 1 && known && password != "", nil
}

// format is the common form of argon2 hashes, which says what they cost.
func format(salt, key []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

func random(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the process instead
	return raw
}
