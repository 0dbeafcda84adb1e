package kindstest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"freshet/api/generated/clientset/versioned"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/ensemble"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
)

// System is a resource API with every reconciler running, a real data plane and real identity.
type System struct {
	*Server
	Admin     versioned.Interface // the system administrator's client
	Service   versioned.Interface // the service's own client
	Directory *identity.Directory
	Verifier  *identity.Verifier
	// Set and Controllers are the running ones.
	Set         *kinds.Set
	Controllers *kinds.Controllers

	replicas atomic.Pointer[kinds.Replicas] // set by Notify
	t        testing.TB
	world    *identitytest.World
	plane    *dataplane.Plane
	stop     func()
}

// StartSystem runs a whole system until the test ends.
func StartSystem(t testing.TB) *System {
	t.Helper()
	s := &System{t: t, world: identitytest.New(t)}
	var err error
	s.plane, err = dataplane.Open(dataplane.Options{
		Dir: t.TempDir(), Domain: Plan().Domain, DefaultOrganization: "default", DefaultName: "default",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.plane.Close(); err != nil {
			t.Errorf("close the data plane: %v", err)
		}
	})
	s.run(t.TempDir())
	t.Cleanup(func() { s.stop() })
	return s
}

// run starts a server on the data in dir, with an empty directory.
func (s *System) run(dir string) {
	s.t.Helper()
	s.Directory = identity.NewDirectory()
	s.Verifier = identity.NewVerifier(s.world.Issuer, s.Directory, identity.VerifierOptions{})
	set := s.kinds(s.Directory, s)
	s.Server = &Server{dir: dir, t: s.t, opt: Options{Dir: dir, Kinds: set.Definitions()}}
	s.open()
	controllers, err := set.Controllers(s.Loopback(), s.Recorder())
	if err != nil {
		s.t.Fatal(err)
	}
	s.Set, s.Controllers = set, controllers
	ctx, cancel := context.WithCancel(context.Background())
	if err := controllers.Load(ctx); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := controllers.Run(ctx); err != nil && ctx.Err() == nil {
			s.t.Errorf("controllers: %v", err)
		}
	}()
	server := s.Server
	s.stop = func() { cancel(); <-done; server.Close() }
	s.Admin, s.Service = s.client(s.Client()), s.client(s.Loopback())
}

func (s *System) kinds(directory *identity.Directory, replicas kinds.Replicas) *kinds.Set {
	return kinds.New(kinds.Options{
		Plan: Plan(), Plane: ensemble.SinglePlane{Plane: s.plane},
		Issuer: s.world.Issuer, Directory: directory, Sealer: s.world.Sealer, Replicas: replicas,
		Policy: access.NewPolicy(), SystemOrganization: "default", SystemAccount: "admin",
		SignIns: emptySignIns(directory, s.world.Issuer), Log: slog.New(slog.DiscardHandler),
	})
}

// Notify sets the replicas that receive every change that affects authentication or authorization,
// before the call returns.
func (s *System) Notify(replicas kinds.Replicas) { s.replicas.Store(&replicas) }

// NotifyStored implements kinds.Replicas.
func (s *System) NotifyStored(change kinds.Change) {
	if replicas := s.replicas.Load(); replicas != nil {
		(*replicas).NotifyStored(change)
	}
}

// Replica returns the kinds of another server, which receive changes through Apply only, and its
// verifier.
func (s *System) Replica() (*kinds.Set, *identity.Verifier) {
	directory := identity.NewDirectory()
	return s.kinds(directory, nil), identity.NewVerifier(s.world.Issuer, directory, identity.VerifierOptions{})
}

func (s *System) client(config *rest.Config) versioned.Interface {
	s.t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// Restart stops the system and starts another on the same data.
func (s *System) Restart() {
	s.t.Helper()
	s.stop()
	s.run(s.dir)
}

// Eventually waits for an effect of the reconcilers.
func (s *System) Eventually(what string, ok func() bool) {
	s.t.Helper()
	Eventually(s.t, what, ok)
}
