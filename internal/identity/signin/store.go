package signin

import (
	"context"
	"strings"

	"freshet/internal/base/errs"
)

// Store stores the records of all replicas, encrypted.
type Store interface {
	// Get returns a record and its revision, or nil and 0 if it does not exist.
	Get(ctx context.Context, key string) (value []byte, revision int64, err error)
	// Put stores a record if revision is the stored revision (0: the record does not
	// exist). Otherwise it returns ErrChanged. It returns the new revision.
	Put(ctx context.Context, key string, value []byte, revision int64) (int64, error)
	// Delete removes a record if revision is the stored revision. Otherwise it returns
	// ErrChanged. It returns the revision of the deletion.
	Delete(ctx context.Context, key string, revision int64) (int64, error)
	// List calls visit for every record of one revision, and returns that revision. It
	// skips records that cannot be decrypted.
	List(ctx context.Context, visit func(key string, value []byte, revision int64)) (int64, error)
	// Watch calls visit for every change after a revision, with a nil value for a
	// deletion, until the context is canceled or the watch fails.
	Watch(ctx context.Context, after int64, visit func(key string, value []byte, revision int64)) error
}

// ErrChanged is the error of a compare and swap that failed.
var ErrChanged = errs.New(errs.Conflict, "record was changed by another request")

// Prefixes of the keys, one for each kind of record.
const (
	peoplePrefix    = "people/"
	sessionsPrefix  = "sessions/"
	grantsPrefix    = "grants/"
	codesPrefix     = "codes/"
	devicesPrefix   = "devices/"
	userCodesPrefix = "words/" // user codes of devices
	linksPrefix     = "links/"
	// challengesPrefix that passkeys have signed
	challengesPrefix = "challenges/"
)

// kindOf returns the kind of record of a key, for messages. The rest of the key may be the
// hash of a secret.
func kindOf(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}
