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
// needs a core and memory. Callers at addresses from which their user has signed in before have
// a capacity of their own in addition, so that guesses from other addresses cannot use up all.
type hasher struct {
	working  chan struct{} // semaphore of running hashes
	reserved chan struct{} // the same, for known addresses only
	waiting  chan struct{} // semaphore of callers that wait for working
	known    chan struct{} // semaphore of callers at known addresses that wait for working or reserved
	decoy    string        // hash of an unknown password, for users without one
	hashed   atomic.Int64
}

// waitingPerCore is how many callers may wait per running hash: about two seconds.
// reservedHashes is how many hashes of known addresses may run in addition to the others.
const (
	waitingPerCore = 64
	reservedHashes = 1
)

func newHasher(cores int) *hasher {
	h := &hasher{
		working: make(chan struct{}, cores), waiting: make(chan struct{}, cores*waitingPerCore),
		reserved: make(chan struct{}, reservedHashes), known: make(chan struct{}, reservedHashes*waitingPerCore),
	}
	salt := random(argonSalt)
	h.decoy = format(salt, random(argonKey))
	return h
}

// enter acquires working, or reserved for a known address. The caller must call leave.
func (h *hasher) enter(ctx context.Context, known bool) (leave func(), err error) {
	waiting, reserved := h.waiting, (chan struct{})(nil) // a nil channel is never ready
	if known {
		waiting, reserved = h.known, h.reserved
	}
	select {
	case waiting <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	defer func() { <-waiting }()
	select {
	case h.working <- struct{}{}:
		h.hashed.Add(1)
		return func() { <-h.working }, nil
	case reserved <- struct{}{}:
		h.hashed.Add(1)
		return func() { <-reserved }, nil
	case <-ctx.Done():
		return nil, errs.Newf(errs.Unavailable, "waiting to check a password: %w", context.Cause(ctx))
	}
}

// hash returns the stored form of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx, false)
	if err != nil {
		return "", err
	}
	defer leave()
	salt := random(argonSalt)
	return format(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)), nil
}

// check compares a password with its stored form. If stored is empty, it does the same work
// and returns false. known is true for a known address of the user.
func (h *hasher) check(ctx context.Context, stored, password string, known bool) (bool, error) {
	leave, err := h.enter(ctx, known)
	if err != nil {
		return false, err
	}
	defer leave()
	exists := stored != ""
	if !exists {
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
	return subtle.ConstantTimeCompare(got, rawWant) == 1 && exists && password != "", nil
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
