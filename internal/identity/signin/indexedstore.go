package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/identity"
)

// indexedStore is the Store with an index in memory of the people, sessions and grants. It
// updates the directory with every change of a grant. All parts of the service share one.
type indexedStore struct {
	store     Store
	directory *identity.Directory
	replicas  Replicas // nil without replicas
	log       *slog.Logger

	mu      sync.Mutex                      // protects the fields below
	changed func(organization, user string) // called when the credentials of a user have changed
	index   index
	after   int64 // revision after which to watch the store
}

func newIndexedStore(opts *Options) *indexedStore {
	return &indexedStore{
		store: opts.Store, directory: opts.Directory, replicas: opts.Replicas, log: opts.Log,
		changed: func(string, string) {}, index: newIndex(),
	}
}

func (s *indexedStore) onChange(f func(organization, user string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = f
}

func (s *indexedStore) notifyChange(of Subject) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	changed(of.Organization, of.User)
}

// read returns the decoded record of a key; ok is false if it does not exist.
func read[T any](ctx context.Context, s *indexedStore, key string) (record T, revision int64, ok bool, err error) {
	data, revision, err := s.store.Get(ctx, key)
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

// put stores a record and applies it to the index.
func (s *indexedStore) put(ctx context.Context, key string, record any, revision int64) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding a record of %s: %w", kindOf(key), err)
	}
	now, err := s.store.Put(ctx, key, data, revision)
	if err != nil {
		return fmt.Errorf("storing a record of %s: %w", kindOf(key), err)
	}
	s.apply(key, data, now)
	return nil
}

// remove deletes a record and applies the deletion to the index.
func (s *indexedStore) remove(ctx context.Context, key string, revision int64) (now int64, err error) {
	now, err = s.store.Delete(ctx, key, revision)
	if err != nil {
		return 0, fmt.Errorf("deleting a record of %s: %w", kindOf(key), err)
	}
	s.apply(key, nil, now)
	return now, nil
}

// delete deletes a record regardless of its revision. It ends the tokens of a grant in this
// process even if the store fails.
func (s *indexedStore) delete(ctx context.Context, key string) error {
	s.endTokens(key)
	for {
		_, revision, err := s.store.Get(ctx, key)
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
func (s *indexedStore) notifyEnd(key string, revision int64) {
	if s.replicas != nil && (strings.HasPrefix(key, sessionsPrefix) || strings.HasPrefix(key, grantsPrefix)) {
		s.replicas.NotifyEnd(key, revision)
	}
}

// load applies all stored records to the index.
func (s *indexedStore) load(ctx context.Context) error {
	revision, err := s.store.List(ctx, s.apply)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = revision
	return nil
}

// reload reads all records again and ends those that do not exist any more.
func (s *indexedStore) reload(ctx context.Context) error {
	seen := map[string]bool{}
	revision, err := s.store.List(ctx, func(key string, value []byte, revision int64) {
		seen[key] = true
		s.apply(key, value, revision)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.after = revision
	var gone []string
	for key := range s.index.entries.All() {
		if !seen[key] {
			gone = append(gone, key)
		}
	}
	s.mu.Unlock()
	for _, key := range gone {
		s.apply(key, nil, revision)
	}
	return nil
}

const watchBackoff = time.Second

// follow watches the store. When the watch fails it reads all records again.
func (s *indexedStore) follow(ctx context.Context) {
	for {
		s.mu.Lock()
		after := s.after
		s.mu.Unlock()
		err := s.store.Watch(ctx, after, s.apply)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Warn("watch of sign-in records failed; retrying", slog.Any("error", err))
		}
		if retry.Sleep(ctx, watchBackoff) != nil {
			return
		}
		if err := s.reload(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("sign-in records cannot be read; retrying", slog.Any("error", err))
		}
	}
}
