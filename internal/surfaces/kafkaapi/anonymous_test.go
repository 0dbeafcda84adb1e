package kafkaapi_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/internal/surfaces/pipeline"
)

func TestAnonymousAccount(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	if got := kafkaapi.NewAnonymousAccount("", w.Directory, w.Issuer); got != nil {
		t.Errorf("without the setting: got %+v, want nil", got)
	}
	const audience = "urn:vendor:messaging:acme:prod"
	cluster := &kafkaapi.Cluster{Audiences: []string{audience}}
	guest := kafkaapi.NewAnonymousAccount("acme/guest", w.Directory, w.Issuer)
	if _, err := guest.Token(cluster); err == nil || !strings.Contains(err.Error(), "acme/guest of stream.anonymous") {
		t.Errorf("unknown account: got %v, want an error that names it", err)
	}
	w.Account("acme", "guest") // created while the server runs
	token, err := guest.Token(cluster)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Verifier.Authenticate(t.Context(), token, audience)
	if err != nil || p.Organization != "acme" || p.ServiceAccount != "guest" {
		t.Errorf("token: got %+v, %v; want service account guest of acme", p, err)
	}
	w.Account("acme", "root", func(a *identity.Account) { a.Admin = true })
	root := kafkaapi.NewAnonymousAccount("acme/root", w.Directory, w.Issuer)
	if _, err := root.Token(cluster); err != nil {
		t.Errorf("account of an administrator: got %v, want a token", err)
	}
	w.Account("acme", "server", func(a *identity.Account) { a.System = true })
	system := kafkaapi.NewAnonymousAccount("acme/server", w.Directory, w.Issuer)
	if _, err := system.Token(cluster); err == nil || !strings.Contains(err.Error(), "belongs to the server") {
		t.Errorf("account of the server: got %v, want an error", err)
	}
}

// TestAnonymousAdministratorIsLogged checks that a listener without credentials is a warning in the log when it starts,
// and an administrator another one, once.
func TestAnonymousAdministratorIsLogged(t *testing.T) {
	t.Parallel()
	for admin, want := range map[bool]int{false: 0, true: 1} {
		var log lockedBuffer
		w := newHarness(t, func(o *kafkaapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		w.account("guest", func(a *identity.Account) { a.Admin = admin })
		guest := kafkaapi.NewAnonymousAccount(organization+"/guest", w.identity.Directory, w.identity.Issuer)
		address := w.listen(guest)
		for range 3 {
			r := &rawClient{harness: w}
			r.dial(address)
			roundTrip[*kmsg.MetadataResponse](r, topicsRequest("x"))
		}
		got := log.String()
		if n := strings.Count(got, "without credentials, see stream.anonymous"); n != 1 {
			t.Errorf("administrator %t: got %d warnings about the listener, want 1", admin, n)
		}
		if n := strings.Count(got, "ADMINISTRATOR"); n != want {
			t.Errorf("administrator %t: got %d warnings about the account, want %d", admin, n, want)
		}
	}
}

// lockedBuffer is a buffer for the log of a server.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestAnonymousConnectionIsAuthenticated checks that the first request of a client without credentials may be large,
// and that a client with credentials uses those.
func TestAnonymousConnectionIsAuthenticated(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	w.account("guest")
	address := w.listen(kafkaapi.NewAnonymousAccount(organization+"/guest", w.identity.Directory, w.identity.Issuer))
	for who, want := range map[string]int16{
		"": kerr.TopicAuthorizationFailed.Code, w.token: kerr.UnknownTopicOrPartition.Code,
	} {
		r := &rawClient{harness: w, token: who}
		r.dial(address)
		if who != "" {
			r.login()
		}
		got := roundTrip[*kmsg.ProduceResponse](r, produceOf("no-such-topic", 900<<10))
		if code := got.Topics[0].Partitions[0].ErrorCode; code != want {
			t.Errorf("first request of 900 KiB, credentials %t: got code %d, want %d", who != "", code, want)
		}
	}
}

// anonymousWorld is the cluster of anonymous clients.
type anonymousWorld struct {
	kafkaapi.Clusters
	cluster kafkaapi.Cluster
}

// Default implements kafkaapi.Clusters.
func (a *anonymousWorld) Default() (*kafkaapi.Cluster, error) { return &a.cluster, nil }

// TestAnonymousConnectionsStayOpen opens more connections without credentials than may be unauthenticated, leaves
// them idle for longer than the time to authenticate, and checks that none is closed.
func TestAnonymousConnectionsStayOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := identitytest.New(t)
		w.Account(organization, "guest")
		l := &pipeListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
		server := kafkaapi.NewServer(kafkaapi.Options{
			Options: pipeline.Options{
				Authenticator: w.Verifier, Authorizer: struct{ pipeline.Authorizer }{},
			},
			Policy: struct{ kafkaapi.Policy }{},
			Clusters: &anonymousWorld{cluster: kafkaapi.Cluster{
				Audiences: []string{identity.InstanceAudience(organization, instance)},
			}},
			Limits: kafkaapi.Limits{Connections: 40},
		})
		go func() {
			_ = server.Serve(kafkaapi.Listener{
				Listener:  l,
				Anonymous: kafkaapi.NewAnonymousAccount(organization+"/guest", w.Directory, w.Issuer),
			})
		}()
		var open atomic.Int64
		for range 30 { // at most 16 may be unauthenticated
			l.dial("127.0.0.1", &open)
			synctest.Wait()
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got := open.Load(); got != 30 {
			t.Errorf("after a minute: got %d open connections, want 30", got)
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if got := open.Load(); got != 0 {
			t.Errorf("after the time for idle connections: got %d open connections, want 0", got)
		}
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
