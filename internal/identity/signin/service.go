package signin

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/base/revision"
	"freshet/internal/identity"
)

// Options configures the service; Store, Directory and Issuer are required.
type Options struct {
	Store     Store
	Directory *identity.Directory
	Issuer    *identity.Issuer
	// Audience is the audience of the resource API: its base URL.
	Audience string
	// TokenLifetime is the lifetime of access tokens, SessionLifetime that of browser
	// sessions. DeviceLifetime is how long a device stays signed in without a refresh.
	TokenLifetime   time.Duration
	SessionLifetime time.Duration
	DeviceLifetime  time.Duration
	// RefreshGrace is how long Refresh returns the same successor for a refresh token that
	// was exchanged, if the successor was not used.
	RefreshGrace time.Duration
	// Trusts reports whether the OpenID provider is trusted for an e-mail address; nil
	// without a provider.
	Trusts func(email string) bool
	// AdminOrganization and AdminAccount are the account of AdminLink.
	AdminOrganization string
	AdminAccount      string
	// OnEnd is called with the key of every session and grant that has ended in this
	// process, and returns when the other replicas have ended it; nil without replicas.
	OnEnd func(key string, revision int64)
	Log   *slog.Logger
}

// Service signs people in and manages their sessions and grants.
type Service struct {
	opts   Options
	hasher *hasher
	polls  *pollLimiter
	wake   chan struct{} // notifies Run of leaving

	mu      sync.Mutex                      // protects the fields below
	changed func(organization, user string) // called when the credentials of a user have changed
	index   index
	after   int64    // revision after which to watch the store
	leaving []string // uids of users whose sessions Run has to remove
}

// New returns the service. Call Load before using it.
func New(opts Options) *Service {
	return &Service{
		opts: opts, hasher: newHasher(max(1, runtime.GOMAXPROCS(0)/2)), polls: newPollLimiter(),
		changed: func(string, string) {}, index: newIndex(), wake: make(chan struct{}, 1),
	}
}

// OnChange registers f, which is called when the credentials of a user have changed.
func (s *Service) OnChange(f func(organization, user string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = f
}

func (s *Service) notifyChange(of Subject) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	changed(of.Organization, of.User)
}

// Load reads all stored records. When it returns, the directory has every stored session.
// The directory must already contain all users and accounts.
func (s *Service) Load(ctx context.Context) error {
	revision, err := s.opts.Store.List(ctx, s.apply)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.after = revision
	s.mu.Unlock()
	s.forgetChangedUsers()
	return nil
}

const (
	sweepEvery   = time.Minute
	watchBackoff = time.Second
)

// Run watches the store for changes of other replicas and removes ended records, until the
// context is canceled.
func (s *Service) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.follow(ctx) })
	defer running.Wait()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.wake:
			s.removeForgotten(ctx)
		case <-tick.C:
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("ended sessions cannot be removed from the store; the next sweep retries",
					slog.Any("error", err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// follow watches the store. When the watch fails it reads all records again.
func (s *Service) follow(ctx context.Context) {
	for {
		s.mu.Lock()
		after := s.after
		s.mu.Unlock()
		err := s.opts.Store.Watch(ctx, after, s.apply)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.opts.Log.Warn("watch of sign-in records failed; retrying", slog.Any("error", err))
		}
		if retry.Sleep(ctx, watchBackoff) != nil {
			return
		}
		if err := s.Reload(ctx); err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("sign-in records cannot be read; retrying", slog.Any("error", err))
		}
	}
}

// ApplyEnd ends a session or grant that has ended in another replica, before the watch of
// the store reports it.
func (s *Service) ApplyEnd(key string, revision int64) { s.apply(key, nil, revision) }

// Reload reads all records again and ends those that do not exist any more.
func (s *Service) Reload(ctx context.Context) error {
	seen := map[string]bool{}
	revision, err := s.opts.Store.List(ctx, func(key string, value []byte, revision int64) {
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

// Sweep removes expired records, and records of users that do not exist any more.
func (s *Service) Sweep(ctx context.Context) error {
	type old struct {
		key      string
		revision int64
	}
	var over []old
	now := time.Now()
	_, err := s.opts.Store.List(ctx, func(key string, value []byte, revision int64) {
		if s.removable(key, value, now) {
			over = append(over, old{key, revision})
		}
	})
	if err != nil {
		return err
	}
	var problems []error
	for _, o := range over {
		if _, err := s.remove(ctx, o.key, o.revision); err != nil && !errors.Is(err, ErrChanged) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// LoadSession implements identity.SessionLoader.
func (s *Service) LoadSession(ctx context.Context, id string) (identity.Session, bool, error) {
	if len(id) > maxToken || strings.Contains(id, "/") {
		return identity.Session{}, false, nil
	}
	g, _, ok, err := read[grant](ctx, s.opts.Store, grantsPrefix+id)
	if err != nil || !ok {
		return identity.Session{}, false, err
	}
	return g.identity(id), true, nil
}

// index contains the records of people, sessions and grants in memory, and which of them
// belong to a user or a session.
type index struct {
	entries *revision.Map[string, indexEntry]
	byOwner map[string]map[string]struct{} // keys of records by uid, or by key of a session
}

// indexEntry is the part of a record that is kept in memory.
type indexEntry struct {
	subject Subject
	session string // for a grant: the key of its session
	begun   time.Time
	ends    time.Time

	password bool // the last three are for people
	passkeys int
	invited  time.Time
}

const tombstonesKept = 1 << 16

func newIndex() index {
	return index{
		entries: revision.NewMap[string, indexEntry](tombstonesKept),
		byOwner: make(map[string]map[string]struct{}),
	}
}

func (x *index) link(to, key string) {
	if to == "" {
		return
	}
	set := x.byOwner[to]
	if set == nil {
		set = make(map[string]struct{})
		x.byOwner[to] = set
	}
	set[key] = struct{}{}
}

func (x *index) unlink(from, key string) {
	delete(x.byOwner[from], key)
	if len(x.byOwner[from]) == 0 {
		delete(x.byOwner, from)
	}
}
