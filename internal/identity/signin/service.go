package signin

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/revision"
	"freshet/internal/identity"
)

// Options configures the service; Store, Directory and Issuer are required.
type Options struct {
	Store     Store
	Directory *identity.Directory
	Issuer    *identity.Issuer
	// Audience is that of the resource API: its base URL.
	Audience string
	// TokenLifetime is how long access tokens live; SessionLifetime how long
	// somebody stays signed in in a browser; DeviceLifetime how long a device may
	// go without a sign of life.
	TokenLifetime   time.Duration
	SessionLifetime time.Duration
	DeviceLifetime  time.Duration
	// RefreshGrace is how long a refresh token that was exchanged gets the same answer
	// again, while nobody has used the one that followed.
	RefreshGrace time.Duration
	// Trusts says whether a provider elsewhere may vouch for an address; nil: there
	// is none.
	Trusts func(email string) bool
	// AdminOrganization and AdminAccount are whose links AdminLink makes.
	AdminOrganization string
	AdminAccount      string
	// Ended is told of every session and grant that has ended here, by its key, and
	// returns when other replicas know; nil when there are none.
	Ended func(key string, revision int64)
	Log   *slog.Logger
}

// Service knows how people sign in and who has.
type Service struct {
	opts   Options
	hasher *hasher
	polls  *pollClock

	mu      sync.Mutex
	changed func(organization, user string) // a person can or cannot sign in now
	index   index
	after   int64         // what the store is watched from
	leaving []string      // uids of people whose sessions are to be removed
	wake    chan struct{} // there are some
}

// New makes the service. It knows nothing before Load.
func New(opts Options) *Service {
	return &Service{
		opts: opts, hasher: newHasher(max(1, runtime.GOMAXPROCS(0)/2)), polls: newPollClock(),
		changed: func(string, string) {}, index: newIndex(), wake: make(chan struct{}, 1),
	}
}

// OnChange calls f when what a person can sign in with has changed.
func (s *Service) OnChange(f func(organization, user string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = f
}

func (s *Service) tellChange(of Subject) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	changed(of.Organization, of.User)
}

// Load reads what is stored: when it returns, every session that is stored is in
// force. The directory knows all people and accounts by then.
func (s *Service) Load(ctx context.Context) error {
	revision, err := s.opts.Store.List(ctx, s.apply)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.after = revision
	s.mu.Unlock()
	s.forgetStrangers()
	return nil
}

const (
	sweepEvery = time.Minute
	watchAgain = time.Second
)

// Run follows what other replicas do, and removes what has ended, until the context
// ends.
func (s *Service) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.follow(ctx) })
	defer running.Wait()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.wake:
			s.forgetAll(ctx)
		case <-tick.C:
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("sessions that have ended cannot be removed from the store for now",
					slog.String("error", err.Error()))
			}
		case <-ctx.Done():
			return
		}
	}
}

// follow watches the store, and reads all of it again when the watch is lost.
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
			s.opts.Log.Warn("sign-ins of other replicas cannot be followed for now", slog.String("error", err.Error()))
		}
		select {
		case <-time.After(watchAgain):
		case <-ctx.Done():
			return
		}
		if err := s.Reload(ctx); err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("stored sign-ins cannot be read for now", slog.String("error", err.Error()))
		}
	}
}

// HearEnd ends a session or grant that has ended at another replica, before the store
// tells of it.
func (s *Service) HearEnd(key string, revision int64) { s.apply(key, nil, revision) }

// Reload reads everything again and ends what is gone.
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
	for key := range s.index.held.All() {
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

// Sweep removes records that have ended, and those of people who are gone.
func (s *Service) Sweep(ctx context.Context) error {
	type old struct {
		key      string
		revision int64
	}
	var over []old
	now := time.Now()
	_, err := s.opts.Store.List(ctx, func(key string, value []byte, revision int64) {
		if s.over(key, value, now) {
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
	g, _, ok, err := read[grant](ctx, s.opts.Store, grants+id)
	if err != nil || !ok {
		return identity.Session{}, false, err
	}
	return g.identity(id), true, nil
}

// index is what of the records has to be at hand: those of people, sessions and
// grants, and what belongs to what.
type index struct {
	held    *revision.Map[string, held]
	belongs map[string]map[string]struct{} // uid, or key of a session → keys
}

// held is the part of a record that is kept in memory.
type held struct {
	subject Subject
	session string // of a grant: the key of its session
	begun   time.Time
	ends    time.Time

	password bool // of people
	passkeys int
	invited  time.Time
}

const tombstonesKept = 1 << 16

func newIndex() index {
	return index{held: revision.NewMap[string, held](tombstonesKept), belongs: make(map[string]map[string]struct{})}
}

func (x *index) link(to, key string) {
	if to == "" {
		return
	}
	set := x.belongs[to]
	if set == nil {
		set = make(map[string]struct{})
		x.belongs[to] = set
	}
	set[key] = struct{}{}
}

func (x *index) unlink(from, key string) {
	delete(x.belongs[from], key)
	if len(x.belongs[from]) == 0 {
		delete(x.belongs, from)
	}
}
