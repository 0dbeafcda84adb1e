// Package kindstest runs a whole resource API in a test: embedded etcd in a temporary directory,
// every kind, and an HTTP listener. The first create succeeds after about 80 ms, so each test can
// have its own server.
package kindstest

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/identity/signin"
)

// Tokens that the server accepts.
const (
	AdminToken = "test-system-administrator"
	AcmeToken  = "test-acme-administrator" // administers the organization acme only
	GuestToken = "test-acme-guest"         // an account of acme without roles
)

// Server is a running resource API.
type Server struct {
	*apiserver.Server
	URL string
	dir string
	t   testing.TB
	web *httptest.Server
	etc *etcd.Member
	opt Options
}

// Options configure Start.
type Options struct {
	Dir                string // directory for the data instead of a new one
	Durable            bool   // use fsync, as in production
	CompactionInterval time.Duration
	Kinds              []store.Definition // instead of all kinds
	EtcdQuota          int64              // see etcd.Options
	Budget             budget.Limits      // see apiserver.Config
	MaxReads           int                // see apiserver.Config
	MaxWrites          int                // see apiserver.Config
	SkipWarmup         bool               // do not wait until lists are served
	// RefuseNewOrganizations: see apiserver.Config.
	RefuseNewOrganizations bool
}

// Start runs a server until the test ends.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s := &Server{dir: opts.Dir, t: t, opt: opts}
	s.open()
	t.Cleanup(s.Close)
	return s
}

func (s *Server) open() {
	s.t.Helper()
	member, err := etcd.Start(s.t.Context(), s.dir, etcd.Options{Unsafe: !s.opt.Durable, QuotaBytes: s.opt.EtcdQuota})
	if err != nil {
		s.t.Fatal(err)
	}
	definitions := s.opt.Kinds
	if definitions == nil {
		definitions = NewSet(s.t).Definitions()
	}
	api, err := apiserver.New(apiserver.Config{
		Etcd:               member.Endpoints(),
		Kinds:              definitions,
		Authenticator:      authenticator{},
		Authorizer:         access.NewPolicy(), // allows administrators only
		Address:            "127.0.0.1:8080",
		Version:            "test",
		CompactionInterval: s.opt.CompactionInterval,
		Store:              member,
		Budget:             s.opt.Budget,
		MaxReads:           s.opt.MaxReads,
		MaxWrites:          s.opt.MaxWrites,

		RefuseNewOrganizations: s.opt.RefuseNewOrganizations,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	api.Start()
	s.Server, s.etc = api, member
	if !s.opt.SkipWarmup {
		ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
		defer cancel()
		if err := api.Warm(ctx); err != nil {
			s.t.Error(err)
		}
	}
	s.web = httptest.NewServer(api.Handler())
	s.URL = s.web.URL
}

// DeleteKey deletes a key from etcd without the API.
func (s *Server) DeleteKey(t testing.TB, key string) {
	t.Helper()
	client, err := s.etc.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // the test is over
	if res, err := client.Delete(t.Context(), key); err != nil || res.Deleted != 1 {
		t.Fatalf("deleting %s: got %v, %v, want one key", key, res, err)
	}
}

// Writes returns how often a key in etcd was written since it was created.
func (s *Server) Writes(t testing.TB, key string) int64 {
	t.Helper()
	client := s.etc.Client()
	defer func() { _ = client.Close() }() // the test is over
	res, err := client.Get(t.Context(), key)
	if err != nil || len(res.Kvs) != 1 {
		t.Fatalf("reading %s: got %v, %v, want one key", key, res, err)
	}
	return res.Kvs[0].Version
}

// Lease returns the remaining lifetime of a key in etcd, or 0 if it does not expire.
func (s *Server) Lease(t testing.TB, key string) time.Duration {
	t.Helper()
	client, err := s.etc.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // the test is over
	res, err := client.Get(t.Context(), key)
	if err != nil || len(res.Kvs) != 1 {
		t.Fatalf("reading %s: got %v, %v, want one key", key, res, err)
	}
	if res.Kvs[0].Lease == 0 {
		return 0
	}
	lease, err := client.TimeToLive(t.Context(), clientv3.LeaseID(res.Kvs[0].Lease))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(lease.TTL) * time.Second
}

// Restart closes the server and opens another on the same data, with a new URL.
func (s *Server) Restart() {
	s.t.Helper()
	s.Close()
	s.open()
}

// Close stops the server; further calls do nothing.
func (s *Server) Close() {
	if s.web == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s.web.CloseClientConnections()
	if err := s.Stop(ctx); err != nil {
		s.t.Errorf("stop: %v", err)
	}
	s.web.Close()
	s.web = nil
	if err := s.etc.Close(); err != nil {
		s.t.Errorf("close etcd: %v", err)
	}
}

// Client returns a configuration for client-go with the token of the system administrator.
func (s *Server) Client() *rest.Config {
	return &rest.Config{Host: s.URL, BearerToken: AdminToken, QPS: -1}
}

// Plan returns the placement of the test server: pool local with one member at location local.
func Plan() *pools.Plan {
	return &pools.Plan{
		Pools: []pools.Pool{{
			Namespace: "default", Name: "local", Type: "generic", DeploymentType: "hosted",
			Members: []pools.Member{{Name: "local", Location: "local", Engine: "pebble"}},
		}},
		Domain: "freshet.localhost", BaseURL: "http://127.0.0.1:8080",
		Images: map[string]pools.Images{
			v1alpha1.ReleaseChannelRapid: {Broker: "freshet/broker:test", Storage: "freshet/storage:test"},
			v1alpha1.ReleaseChannelLTS:   {Broker: "freshet/broker:lts", Storage: "freshet/storage:lts"},
		},
	}
}

// NewSet creates all kinds with real identity and access, an account robot in each of the
// organizations acme and other, and an instance i of acme in the directory, so that keys for it are
// issued. No reconciler runs, and there is no data plane.
func NewSet(t testing.TB) *kinds.Set {
	t.Helper()
	world := identitytest.New(t)
	world.Account("acme", "robot")
	world.Account("other", "robot")
	world.Directory.PutInstance(identity.Instance{Organization: "acme", Name: "i", APIKeys: true})
	return kinds.New(kinds.Options{
		Plan: Plan(), Issuer: world.Issuer, Directory: world.Directory, Sealer: world.Sealer,
		Policy: access.NewPolicy(), SignIns: emptySignIns(world.Directory, world.Issuer),
		Log: slog.New(slog.DiscardHandler),
	})
}

// emptySignIns returns the sign-in state of users when no user is invited.
func emptySignIns(directory *identity.Directory, issuer *identity.Issuer) *signin.People {
	return signin.New(signin.Options{Directory: directory, Issuer: issuer, Log: slog.New(slog.DiscardHandler)}).People
}

type authenticator struct{}

// Authenticate implements surface.Authenticator.
func (authenticator) Authenticate(_ context.Context, token string, _ ...string) (*identity.Principal, error) {
	switch {
	case subtle.ConstantTimeCompare([]byte(token), []byte(AdminToken)) == 1:
		return &identity.Principal{
			Name: "admin@default.test", Organization: "default", ServiceAccount: "admin",
			System: true,
		}, nil
	case subtle.ConstantTimeCompare([]byte(token), []byte(AcmeToken)) == 1:
		return &identity.Principal{Name: "boss@acme.test", Organization: "acme", ServiceAccount: "boss", Admin: true},
			nil
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(GuestToken)) == 1 {
		return &identity.Principal{Name: "guest@acme.test", Organization: "acme", ServiceAccount: "guest"}, nil
	}
	return nil, errs.New(errs.Unauthenticated, "unknown token")
}
