package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"freshet/internal/base/errs"
)

// Store keeps records for all replicas, encrypted.
type Store interface {
	// Get returns a record and its revision; nil and 0 when there is none.
	Get(ctx context.Context, key string) (value []byte, revision int64, err error)
	// Put stores a record if the revision is still the stored one (0: there is
	// none), else fails with ErrChanged. It returns the new revision.
	Put(ctx context.Context, key string, value []byte, revision int64) (int64, error)
	// Delete removes a record if the revision is still the stored one, else fails
	// with ErrChanged. It returns the revision of the deletion.
	Delete(ctx context.Context, key string, revision int64) (int64, error)
	// List visits every record, and returns the revision that it saw. What cannot
	// be read is left out.
	List(ctx context.Context, visit func(key string, value []byte, revision int64)) (int64, error)
	// Watch tells of every change after a revision, nil for a deletion, until the
	// context ends or the store cannot tell any more.
	Watch(ctx context.Context, after int64, visit func(key string, value []byte, revision int64)) error
}

// ErrChanged says that somebody else was faster.
var ErrChanged = errs.New(errs.Conflict, "the record was changed by another request")

// The sorts of records: the beginnings of their keys.
const (
	people   = "people/"
	sessions = "sessions/"
	grants   = "grants/"
	codes    = "codes/"
	devices  = "devices/"
	words    = "words/" // what people type for a device
	links    = "links/"
	// challenges that passkeys have answered
	challenges = "challenges/"
)

// read decodes the record under a key; ok is false when there is none.
func read[T any](ctx context.Context, s Store, key string) (record T, revision int64, ok bool, err error) {
	data, revision, err := s.Get(ctx, key)
	if err != nil {
		return record, 0, false, fmt.Errorf("reading a record of %s: %w", sort(key), err)
	}
	if data == nil {
		return record, 0, false, nil
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return record, 0, false, fmt.Errorf("a record of %s is damaged", sort(key))
	}
	return record, revision, true, nil
}

// write stores a record and has it in force when it returns.
func (s *Service) write(ctx context.Context, key string, record any, revision int64) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding a record of %s: %w", sort(key), err)
	}
	now, err := s.opts.Store.Put(ctx, key, data, revision)
	if err != nil {
		return fmt.Errorf("storing a record of %s: %w", sort(key), err)
	}
	s.apply(key, data, now)
	return nil
}

// remove deletes a record, and has what it stood for ended when it returns.
func (s *Service) remove(ctx context.Context, key string, revision int64) (now int64, err error) {
	now, err = s.opts.Store.Delete(ctx, key, revision)
	if err != nil {
		return 0, fmt.Errorf("deleting a record of %s: %w", sort(key), err)
	}
	s.apply(key, nil, now)
	return now, nil
}

// drop deletes a record whatever it says by now. What it stood for is over in this
// process even if the store fails.
func (s *Service) drop(ctx context.Context, key string) error {
	s.end(key)
	for {
		_, revision, err := s.opts.Store.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("reading a record of %s: %w", sort(key), err)
		}
		if revision == 0 { // another replica may not have heard
			s.tellEnd(key, 0)
			return nil
		}
		now, err := s.remove(ctx, key, revision)
		if err == nil {
			s.tellEnd(key, now)
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// tellEnd has other replicas end what a record stood for.
func (s *Service) tellEnd(key string, revision int64) {
	if s.opts.Ended != nil && (strings.HasPrefix(key, sessions) || strings.HasPrefix(key, grants)) {
		s.opts.Ended(key, revision)
	}
}

// sort is what sort of record a key names, for messages: the rest of it may be the
// hash of a secret.
func sort(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}
