package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// read returns the decoded record of a key; ok is false if it does not exist.
func read[T any](ctx context.Context, s Store, key string) (record T, revision int64, ok bool, err error) {
	data, revision, err := s.Get(ctx, key)
	if err != nil {
		return record, 0, false, fmt.Errorf("reading a record of %s: %w", kindOf(key), err)
	}
	if data == nil {
		return record, 0, false, nil
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return record, 0, false, fmt.Errorf("record of %s is damaged", kindOf(key))
	}
	return record, revision, true, nil
}

// putRecord stores a record and applies it to the index.
func (s *Service) putRecord(ctx context.Context, key string, record any, revision int64) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding a record of %s: %w", kindOf(key), err)
	}
	now, err := s.opts.Store.Put(ctx, key, data, revision)
	if err != nil {
		return fmt.Errorf("storing a record of %s: %w", kindOf(key), err)
	}
	s.apply(key, data, now)
	return nil
}

// remove deletes a record and applies the deletion to the index.
func (s *Service) remove(ctx context.Context, key string, revision int64) (now int64, err error) {
	now, err = s.opts.Store.Delete(ctx, key, revision)
	if err != nil {
		return 0, fmt.Errorf("deleting a record of %s: %w", kindOf(key), err)
	}
	s.apply(key, nil, now)
	return now, nil
}

// deleteRecord deletes a record regardless of its revision. It ends the tokens of a grant in this
// process even if the store fails.
func (s *Service) deleteRecord(ctx context.Context, key string) error {
	s.endTokens(key)
	for {
		_, revision, err := s.opts.Store.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("reading a record of %s: %w", kindOf(key), err)
		}
		if revision == 0 { // deleted already, but other replicas may not know it yet
			s.notifyEnd(key, 0)
			return nil
		}
		now, err := s.remove(ctx, key, revision)
		if err == nil {
			s.notifyEnd(key, now)
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// notifyEnd notifies the other replicas of the end of a session or grant.
func (s *Service) notifyEnd(key string, revision int64) {
	if s.opts.OnEnd != nil && (strings.HasPrefix(key, sessionsPrefix) || strings.HasPrefix(key, grantsPrefix)) {
		s.opts.OnEnd(key, revision)
	}
}

// kindOf returns the kind of record of a key, for messages. The rest of the key may be the
// hash of a secret.
func kindOf(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}
