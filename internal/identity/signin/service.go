package signin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"freshet/internal/identity"
)

// Provider is the OpenID provider; openid.Provider implements it.
type Provider interface {
	// Trusts reports whether the provider is trusted for an e-mail address.
	Trusts(email string) bool
}

// Replicas are the other processes that serve the same records.
type Replicas interface {
	// NotifyEnd ends a session or grant in the other replicas that has ended in this
	// process. It returns when they have ended it.
	NotifyEnd(key string, revision int64)
}

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
	Provider     Provider // nil without a provider
	// AdminOrganization and AdminAccount are the account of AdminLink.
	AdminOrganization string
	AdminAccount      string
	Replicas          Replicas // nil without replicas
	Log               *slog.Logger
}

// Service signs people in. Each part does one job and has its own state; all parts share the
// records. A user of the service takes the part that it needs.
type Service struct {
	Subjects  *Subjects
	People    *People
	Links     *Links
	Passwords *Passwords
	Passkeys  *Passkeys
	Sessions  *Sessions
	Grants    *Grants
	Codes     *Codes
	Devices   *Devices

	records *indexedStore
	sweeper *sweeper
	log     *slog.Logger
}

// New returns the service. Call Load before using it.
func New(opts Options) *Service {
	records := newIndexedStore(&opts)
	subjects := &Subjects{directory: opts.Directory, issuer: opts.Issuer, provider: opts.Provider}
	sessions := &Sessions{records: records, subjects: subjects, lifetime: opts.SessionLifetime}
	people := newPeople(records, subjects, sessions, opts.Log)
	links := &Links{
		records: records, subjects: subjects, people: people, sessions: sessions, directory: opts.Directory,
		adminOrganization: opts.AdminOrganization, adminAccount: opts.AdminAccount,
	}
	grants := &Grants{
		records: records, subjects: subjects, sessions: sessions, directory: opts.Directory, issuer: opts.Issuer,
		audience: opts.Audience, tokenLifetime: opts.TokenLifetime, deviceLifetime: opts.DeviceLifetime,
		refreshGrace: opts.RefreshGrace,
	}
	return &Service{
		Subjects: subjects, People: people, Links: links, Sessions: sessions, Grants: grants,
		Passwords: newPasswords(records, subjects, people, links),
		Passkeys: &Passkeys{
			records: records, subjects: subjects, people: people, links: links, sessions: sessions,
		},
		Codes:   &Codes{records: records, grants: grants},
		Devices: newDevices(records, grants),
		records: records, sweeper: &sweeper{records: records, subjects: subjects}, log: opts.Log,
	}
}

// Load reads all stored records. When it returns, the directory has every stored session.
// The directory must already contain all users and accounts.
func (s *Service) Load(ctx context.Context) error {
	if err := s.records.load(ctx); err != nil {
		return err
	}
	s.People.forgetChanged()
	return nil
}

// sweepEvery is the interval at which Run removes ended records.
const sweepEvery = time.Minute

// Run watches the store for changes of other replicas and removes ended records, until the
// context is canceled.
func (s *Service) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.records.follow(ctx) })
	defer running.Wait()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.People.wake:
			s.People.removeForgotten(ctx)
		case <-tick.C:
			if err := s.sweeper.sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("ended sessions cannot be removed from the store; the next sweep retries",
					slog.Any("error", err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// ApplyEnd ends a session or grant that has ended in another replica, before the watch of
// the store reports it.
func (s *Service) ApplyEnd(key string, revision int64) { s.records.apply(key, nil, revision) }

// Reload reads all records again and ends those that do not exist any more.
func (s *Service) Reload(ctx context.Context) error { return s.records.reload(ctx) }
