package kafkaapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/ops/audit"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/internal/surfaces/pipeline"
)

const (
	organization = "acme"
	instance     = "main"
)

// harness is a server over real parts.
type harness struct {
	*testing.T
	identity *identitytest.World
	policy   *access.Policy
	broker   *messaging.Broker
	cluster  *kafkaapi.Cluster
	server   *kafkaapi.Server
	address  string
	options  pipeline.Options
	token    string // of the organization's administrator
	trail    auditTrail
	stopped  atomic.Bool // the cluster no longer serves the Kafka protocol
}

// auditTrail stores audit records.
type auditTrail struct {
	mu  sync.Mutex
	all []audit.Record
}

// Record implements pipeline.Auditor.
func (a *auditTrail) Record(r audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, r)
}

// count returns the number of audit records of a call with a decision.
func (a *auditTrail) count(resource, verb string, decision audit.Decision) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.all {
		if r := &a.all[i]; r.Resource == resource && r.Verb == verb && r.Decision == decision {
			n++
		}
	}
	return n
}

func newHarness(t *testing.T, edit ...func(*kafkaapi.Options)) *harness {
	t.Helper()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	return newHarnessOn(t, eng, edit...)
}

// newHarnessOn returns a world on an engine, which it closes at the end.
func newHarnessOn(t *testing.T, eng engine.Engine, edit ...func(*kafkaapi.Options)) *harness {
	t.Helper()
	t.Cleanup(func() { _ = eng.Close() })
	return newLimitedHarness(t, eng, nil, edit...)
}

// newLimitedHarness returns a world with quotas on an engine, which the caller closes.
func newLimitedHarness(t *testing.T, eng engine.Engine, limits *quota.Cluster,
	edit ...func(*kafkaapi.Options),
) *harness {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	broker, err := messaging.Open(t.Context(), eng, messaging.Options{Quota: limits, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	coordinator, err := groups.Open(t.Context(), eng,
		groups.Options{
			InitialDelay: 10 * time.Millisecond, HeartbeatInterval: 50 * time.Millisecond, Quota: limits, Logger: quiet,
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = coordinator.Close() })
	w := &harness{T: t, identity: identitytest.New(t), policy: access.NewPolicy(), broker: broker}
	w.cluster = &kafkaapi.Cluster{
		Organization: organization, Name: "prod", UID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
		Scope:     access.Scope{Organization: organization, Instance: instance, Cluster: "prod"},
		Audiences: []string{identity.InstanceAudience(organization, instance)},
		Topics:    broker.Kafka, Appends: broker.Kafka, Namespaces: broker.Catalogue, Grants: broker.Grants,
		Groups: coordinator, Shares: broker.Shares, Members: kafkaapi.SingleServer{},
	}
	opts := kafkaapi.Options{
		Options:  pipeline.Options{Authenticator: w.identity.Verifier, Authorizer: w.policy, Auditor: &w.trail},
		Policy:   w.policy,
		Clusters: w,
	}
	for _, e := range edit {
		e(&opts)
	}
	w.server, w.options = kafkaapi.NewServer(opts), opts.Options
	w.T = t
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := w.server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: got %v, want all connections to end", err)
		}
	})
	w.address = w.listen(nil)
	w.token = w.account("boss", func(a *identity.Account) { a.Admin = true })
	return w
}

// listen serves on one more port.
func (w *harness) listen(anonymous *kafkaapi.AnonymousAccount) (address string) {
	w.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		if err := w.server.Serve(kafkaapi.Listener{Listener: listener, Anonymous: anonymous}); !errors.Is(err,
			kafkaapi.ErrServerClosed) {
			w.Errorf("serve: got %v, want %v", err, kafkaapi.ErrServerClosed)
		}
	}()
	return listener.Addr().String()
}

// AtHost implements kafkaapi.Clusters.
func (w *harness) AtHost(string) (*kafkaapi.Cluster, error) { return w.cluster, nil }

// Default implements kafkaapi.Clusters.
func (w *harness) Default() (*kafkaapi.Cluster, error) { return w.cluster, nil }

// Named implements kafkaapi.Clusters.
func (w *harness) Named(org, name string) (*kafkaapi.Cluster, error) {
	if org == organization && name == "prod" {
		return w.cluster, nil
	}
	return nil, &pipeline.UndisclosedError{Organization: org, Err: errors.New("no such cluster")}
}

// Serves implements kafkaapi.Clusters.
func (w *harness) Serves(*kafkaapi.Cluster) bool { return !w.stopped.Load() }

// account creates a service account and returns a token for it.
func (w *harness) account(name string, edit ...func(*identity.Account)) string {
	w.Helper()
	a, _ := w.identity.Account(organization, name, edit...)
	return w.identity.Token(a, identity.InstanceAudience(organization, instance))
}

// bind grants an account a role.
func (w *harness) bind(account, role string) {
	w.Helper()
	err := w.policy.SetBinding(access.Binding{
		Organization: organization, Name: account + "-" + role, RoleKind: "ClusterRole", Role: role,
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: account}},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// client opens a Kafka client as the administrator.
func (w *harness) client(opts ...kgo.Opt) *kgo.Client {
	w.Helper()
	return w.clientAs(plain.Auth{User: "public/default", Pass: "token:" + w.token}.AsMechanism(), opts...)
}

// clientAs opens a Kafka client with credentials.
func (w *harness) clientAs(credentials sasl.Mechanism, opts ...kgo.Opt) *kgo.Client {
	w.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.address), kgo.SASL(credentials)}, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(client.Close)
	return client
}

func as(token string) sasl.Mechanism {
	return plain.Auth{User: "user", Pass: token}.AsMechanism()
}

func bearer(token string) sasl.Mechanism { return oauth.Auth{Token: token}.AsMechanism() }

func (w *harness) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
