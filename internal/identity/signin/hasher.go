package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"

	"freshet/internal/base/errs"
)

// Parameters of argon2id: about 20 ms and 19 MiB per hash. This is the recommended minimum,
// because every client that can reach the server can make it compute hashes.
const (
	argonTime    = 2
	argonMemory  = 19 << 10 // KiB
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// ErrBusy is the error when too many password checks are waiting.
var ErrBusy = errs.New(errs.Unavailable, "too many people are signing in at the moment; try again in a few seconds")

// hasher computes and checks password hashes. It limits their concurrency, because each
// needs a core and memory.
type hasher struct {
	working chan struct{} // semaphore of running hashes
	waiting chan struct{} // semaphore of callers that wait for working
	decoy   string        // hash of an unknown password, for users without one
	hashed  atomic.Int64
}

// waitingPerCore is how many callers may wait per running hash: about two seconds.
const waitingPerCore = 64

func newHasher(cores int) *hasher {
	h := &hasher{working: make(chan struct{}, cores), waiting: make(chan struct{}, cores*waitingPerCore)}
	salt := random(argonSalt)
	h.decoy = format(salt, random(argonKey))
	return h
}

// enter acquires working. The caller must call leave.
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
		return nil, errs.Newf(errs.Unavailable, "waiting to check a password: %w", context.Cause(ctx))
	}
}

// hash returns the stored form of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	salt := random(argonSalt)
	return format(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)), nil
}

// check compares a password with its stored form. If stored is empty, it does the same work
// and returns false.
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
		return false, errs.New(errs.Internal, "stored password hash is damaged")
	}
	rawSalt, err := base64.RawStdEncoding.DecodeString(salt)
	if err != nil {
		return false, errs.New(errs.Internal, "stored password hash is damaged")
	}
	rawWant, err := base64.RawStdEncoding.DecodeString(want)
	if err != nil || len(rawWant) == 0 || memory > 1<<20 || time > 16 {
		return false, errs.New(errs.Internal, "stored password hash is damaged")
	}
	if len(password) > 4*maxPassword {
		password = "" // too long to be a valid password; the hash takes as long as any other
	}
	got := argon2.IDKey([]byte(password), rawSalt, time, memory, threads, uint32(len(rawWant)))
	return subtle.ConstantTimeCompare(got, rawWant) == 1 && known && password != "", nil
}

// format returns the standard encoding of argon2 hashes, which contains the parameters.
func format(salt, key []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

func random(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never returns an error; crypto/rand aborts the process instead
	return raw
}
