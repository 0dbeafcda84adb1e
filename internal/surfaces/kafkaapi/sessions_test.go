package kafkaapi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/test/tally"
)

func topicsRequest(topics ...string) *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 9
	for _, topic := range topics {
		request.Topics = append(request.Topics, kmsg.MetadataRequestTopic{Topic: &topic})
	}
	return request
}

// authenticate sends credentials on an open connection.
func (r *rawClient) authenticate(mechanism, data string) (*kmsg.SASLAuthenticateResponse, error) {
	r.Helper()
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, mechanism
	if _, err := r.exchange(handshake, nil); err != nil {
		return nil, err
	}
	request := kmsg.NewPtrSASLAuthenticateRequest()
	request.Version, request.SASLAuthBytes = 2, []byte(data)
	response, err := r.exchange(request, nil)
	typed, _ := response.(*kmsg.SASLAuthenticateResponse)
	return typed, err
}

// TestReauthentication checks that a client can re-authenticate as the same account on the same
// connection, and that the connection ends with the old credentials otherwise.
func TestReauthentication(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	audience := identity.InstanceAudience(organization, instance)
	account, _ := w.identity.Account(organization, "app")
	token := func(lifetime time.Duration) string {
		secret, _, err := w.identity.Issuer.AccessToken(account, lifetime, audience)
		w.ok(err)
		return secret.Reveal()
	}
	r := w.wire(token(2 * time.Second))
	first, err := r.authenticate("PLAIN", "\x00user\x00"+token(2*time.Second))
	if err != nil || first.ErrorCode != 0 || first.SessionLifetimeMillis < 1 || first.SessionLifetimeMillis > 2000 {
		t.Fatalf("got %+v, %v; want at most two seconds", first, err)
	}
	longer, err := r.authenticate("PLAIN", "\x00user\x00"+token(time.Hour))
	if err != nil || longer.ErrorCode != 0 || longer.SessionLifetimeMillis < 3_590_000 {
		t.Fatalf("got %+v, %v; want an hour", longer, err)
	}
	brief := w.wire(token(2 * time.Second))
	for started := time.Now(); ; {
		if _, err := brief.exchange(topicsRequest("x"), nil); err != nil {
			break
		}
		if time.Since(started) > time.Minute {
			t.Fatal("session continues after its credentials of 2 s have expired")
		}
	}
	roundTrip[*kmsg.MetadataResponse](r, topicsRequest("x")) // the other session continues with its new credentials

	for name, again := range map[string][2]string{
		"another account":   {"PLAIN", "\x00user\x00" + w.account("other")},
		"another namespace": {"PLAIN", "\x00public/other\x00" + token(time.Hour)},
		"another mechanism": {"OAUTHBEARER", "n,,\x01auth=Bearer " + token(time.Hour) + "\x01\x01"},
		"nonsense":          {"PLAIN", "\x00user\x00nonsense"},
	} {
		r := w.wire(token(time.Hour))
		got, err := r.authenticate(again[0], again[1])
		if err != nil || got.ErrorCode != 58 {
			t.Errorf("%s: got %+v, %v; want code 58", name, got, err)
		}
		if _, err := r.exchange(topicsRequest("x"), nil); err == nil {
			t.Errorf("%s: connection stays open, want it closed", name)
		}
	}
}

// countingAuthorizer counts authorizations.
type countingAuthorizer struct {
	*access.Policy
	calls atomic.Int64
}

func (c *countingAuthorizer) Authorize(ctx context.Context, principal *identity.Principal, p access.Permission,
	scope access.Scope,
) (access.Decision, error) {
	c.calls.Add(1)
	return c.Policy.Authorize(ctx, principal, p, scope)
}

// TestDecisionsAreCached checks that a producer's permission is looked up once, and that a
// revocation takes effect immediately.
func TestDecisionsAreCached(t *testing.T) {
	t.Parallel()
	var policy *countingAuthorizer
	w := newHarness(t, func(o *kafkaapi.Options) {
		given, _ := o.Authorizer.(*access.Policy)
		policy = &countingAuthorizer{Policy: given}
		o.Options = pipeline.Options{Authenticator: o.Authenticator, Authorizer: policy, Auditor: o.Auditor}
	})
	w.partitioned("orders", 1)
	token := w.account("writer")
	w.bind("writer", "topic-producer")
	producer := w.clientAs(as(token), kgo.DefaultProduceTopic("orders"))
	send := func() error {
		return producer.ProduceSync(short(t), &kgo.Record{Value: []byte("x")}).FirstErr()
	}
	w.ok(send())
	before := policy.calls.Load()
	for range 50 {
		w.ok(send())
	}
	if requested := policy.calls.Load() - before; requested > 5 {
		t.Errorf("50 batches: got %d authorizations, want at most 5", requested)
	}
	w.policy.DeleteBinding(organization, "writer-topic-producer", 0)
	if err := send(); err == nil {
		t.Error("after the role was revoked: got a batch stored, want it rejected")
	}
	w.bind("writer", "topic-producer")
	producer = w.clientAs(as(token), kgo.DefaultProduceTopic("orders"))
	w.ok(send())
	w.policy.DeleteBinding(organization, "writer-topic-producer", 0)

	grant := func(p *messaging.Policies) error {
		role := messaging.FormatRole("writer", organization)
		p.Permissions = map[string][]messaging.Action{role: {messaging.ActionProduce}}
		return nil
	}
	broker := w.broker
	w.ok(broker.Catalogue.UpdateNamespace(t.Context(), names.PublicDefault, grant))
	producer = w.clientAs(as(token), kgo.DefaultProduceTopic("orders"))
	w.ok(send())
	w.ok(broker.Catalogue.UpdateNamespace(t.Context(), names.PublicDefault,
		func(p *messaging.Policies) error { p.Permissions = nil; return nil }))
	if err := send(); err == nil {
		t.Error("after the namespace revoked its permission: got a batch stored, want it rejected")
	}
}

// TestThrottling checks that a client over its quota gets a throttle time, and that its next
// request is read only after that time.
func TestThrottling(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	for name, limits := range map[string]quota.Limits{
		"requests": {quota.RequestsPerSecond: 20},
		"bytes":    {quota.BytesPerSecond: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			limited := *w.cluster
			limited.Quota = quota.New(quota.Limits{}, nil).Organization(organization).Open("prod", limits)
			own := newHarnessAt(t, w, &limited)
			r := own.wire(w.token)
			started, disclosed := time.Now(), int32(0)
			for range 40 {
				answer := roundTrip[*kmsg.MetadataResponse](r, topicsRequest("orders"))
				disclosed = max(disclosed, answer.ThrottleMillis)
			}
			if disclosed == 0 {
				t.Error("got no response with a throttle time, want some")
			}
			if took := time.Since(started); took < 700*time.Millisecond {
				t.Errorf("40 requests took %s, want at least 0.7 s", took)
			}
		})
	}
}

// newHarnessAt serves another cluster with the identities of a world.
func newHarnessAt(t *testing.T, of *harness, cluster *kafkaapi.Cluster) *harness {
	t.Helper()
	w := newHarness(t, func(o *kafkaapi.Options) {
		o.Authenticator, o.Authorizer, o.Policy = of.identity.Verifier, of.policy, of.policy
	})
	w.cluster = cluster
	return w
}

// TestListAll checks that with ListAll a list of all topics contains those of other namespaces
// under names that resolve to them.
func TestListAll(t *testing.T) {
	t.Parallel()
	for all, want := range map[bool]string{false: "[here]", true: "[here sales.eu.there]"} {
		w := newHarness(t, func(o *kafkaapi.Options) { o.ListAll = all })
		broker := w.broker
		w.ok(broker.Catalogue.CreateTenant(t.Context(), messaging.Tenant{Name: "sales"}))
		for _, ns := range []string{"eu", "with.dot"} {
			w.ok(broker.Catalogue.CreateNamespace(t.Context(), names.Namespace{Tenant: "sales", Name: ns},
				messaging.Policies{}))
		}
		for _, topic := range []names.Topic{
			publicTopic("here"),
			{Namespace: names.Namespace{Tenant: "sales", Name: "eu"}, Local: "there"},
			{Namespace: names.Namespace{Tenant: "sales", Name: "with.dot"}, Local: "nowhere"},
		} {
			_, err := broker.Kafka.CreateKafkaTopic(t.Context(), topic, 1, nil, false)
			w.ok(err)
		}
		list := func(token string) (found []string) {
			for _, topic := range roundTrip[*kmsg.MetadataResponse](w.wire(token), topicsRequest()).Topics {
				found = append(found, *topic.Topic)
			}
			return found
		}
		if got := fmt.Sprint(list(w.token)); got != want {
			t.Errorf("listAll %t: got %s, want %s", all, got, want)
		}
		if got := list(w.account("nobody")); len(got) > 0 {
			t.Errorf("listAll %t, without a role: got %v, want none", all, got)
		}
	}
}

// TestAttackEndedCredentials checks that a credential that expires while a client waits, or between
// requests, ends the connection before the next response.
func TestAttackEndedCredentials(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for name, end := range map[string]func(w *harness, account *identity.Account, key identity.Key){
		"the account is deleted": func(w *harness, a *identity.Account, _ identity.Key) {
			w.identity.Directory.DeleteAccount(a.Organization, a.Name, a.UID)
		},
		"the key is revoked": func(w *harness, _ *identity.Account, k identity.Key) {
			k.Revoked = true
			w.identity.Directory.PutKey(k)
		},
		"the key is deleted": func(w *harness, _ *identity.Account,
			k identity.Key,
		) {
			w.identity.Directory.DeleteKey(k.ID)
		},
		"the account is no administrator any more": func(w *harness, a *identity.Account, _ identity.Key) {
			changed := *a
			changed.Admin = false
			w.identity.Directory.PutAccount(changed)
		},
	} {
		w := newHarness(t)
		w.partitioned("orders", 1)
		account, _ := w.identity.Account(organization, "app", func(a *identity.Account) { a.Admin = true })
		key, token := w.identity.Key(account, "")
		idle, waiting := w.wire(token), w.wire(token)
		roundTrip[*kmsg.MetadataResponse](idle, topicsRequest("orders"))
		answer := make(chan error, 1)
		go func() {
			request := fetchFrom(0, -1, map[string][]int64{"orders": {0}})
			request.MinBytes, request.MaxWaitMillis = 1, 8000
			_, err := waiting.exchange(request, nil)
			answer <- err
		}()
		end(w, account, key)
		w.send("orders", 0, "secret")
		for what, err := range map[string]error{
			"waiting": <-answer,
			"idle":    func() error { _, err := idle.exchange(topicsRequest("orders"), nil); return err }(),
		} {
			attempts++
			if err == nil {
				successes++
				t.Errorf("%s, %s: got a response, want the connection closed", name, what)
			}
		}
	}
	tally.Attack(t, "stream: responses after a credential has expired", attempts, successes)
}

// TestAnonymous checks that loopback clients without credentials act as the account of the
// listener, with its permissions.
func TestAnonymous(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	w.identity.Account(organization, "guest")
	w.bind("guest", "topic-consumer")
	anonymous := func(name string) *kafkaapi.AnonymousAccount {
		return kafkaapi.NewAnonymousAccount(organization+"/"+name, w.identity.Directory, w.identity.Issuer)
	}
	address := w.listen(anonymous("guest"))
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic("orders"),
		kgo.DisableIdempotentWrite(), kgo.ConsumeTopics("orders"))
	w.ok(err)
	t.Cleanup(client.Close)
	w.send("orders", 0, "hello")
	if got := poll(t, client, 1); string(got[0].Value) != "hello" {
		t.Errorf("got %q, want hello", got[0].Value)
	}
	if err := client.ProduceSync(short(t), &kgo.Record{Value: []byte("x")}).FirstErr(); err == nil {
		t.Error("producing as an anonymous consumer: got no error")
	}
	refused := w.listen(anonymous("nobody"))
	for name, at := range map[string]string{"without such an account": refused, "without the setting": w.address} {
		r := &rawClient{harness: w}
		r.dial(at)
		if _, err := r.exchange(topicsRequest("orders"), nil); err == nil {
			t.Errorf("%s: got a response without credentials", name)
		}
	}
}

// TestClusterStopsServing checks that the connections to a cluster end when it no longer serves the
// Kafka protocol.
func TestClusterStopsServing(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	r := w.wire(w.token)
	roundTrip[*kmsg.MetadataResponse](r, topicsRequest("orders"))
	w.stopped.Store(true)
	if _, err := r.exchange(topicsRequest("orders"), nil); err == nil {
		t.Error("got a response of a cluster without the Kafka protocol, want the connection to end")
	}
}

// clustersWith finds the cluster of a harness, or fails with the stored error.
type clustersWith struct {
	kafkaapi.Clusters
	err *atomic.Pointer[error]
}

func (c clustersWith) Default() (*kafkaapi.Cluster, error) {
	if err := c.err.Load(); err != nil {
		return nil, *err
	}
	return c.Clusters.Default()
}

// TestTemporaryErrorsAreNoRejection checks that a client gets no response while its cluster is being
// opened. After SASL_AUTHENTICATION_FAILED clients give up; without a response they connect again.
func TestTemporaryErrorsAreNoRejection(t *testing.T) {
	t.Parallel()
	var failure atomic.Pointer[error]
	w := newHarness(t, func(o *kafkaapi.Options) { o.Clusters = clustersWith{o.Clusters, &failure} })
	send := func(version int16) (*kmsg.SASLAuthenticateResponse, error) {
		r := &rawClient{harness: w, responses: make(map[int16]int)}
		r.dial(w.address)
		defer r.close()
		if version == 1 {
			return r.authenticate("PLAIN", "\x00user\x00"+w.token)
		}
		handshake := kmsg.NewPtrSASLHandshakeRequest()
		handshake.Mechanism = "PLAIN"
		if _, err := r.exchange(handshake, nil); err != nil {
			return nil, err
		}
		credentials := []byte("\x00user\x00" + w.token)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(credentials))), credentials...)
		if _, err := r.conn.Write(frame); err != nil {
			return nil, err
		}
		_, err := io.ReadFull(r.in, make([]byte, 4))
		return &kmsg.SASLAuthenticateResponse{}, err
	}
	for _, version := range []int16{0, 1} {
		var opening error = engine.ErrOpening
		failure.Store(&opening)
		if got, err := send(version); !errors.Is(err, io.EOF) {
			t.Errorf("version %d: got %+v, %v; want the connection closed without a response", version, got, err)
		}
		failure.Store(nil)
		if got, err := send(version); err != nil || got.ErrorCode != 0 {
			t.Errorf("version %d, after the cluster was opened: got %+v, %v; want a session", version, got, err)
		}
	}
	if n := w.trail.count("stream", "connect", audit.Denied); n != 0 {
		t.Errorf("got %d audit records of rejected clients, want none", n)
	}
	var broken error = engine.ErrNotOpen
	failure.Store(&broken)
	if got, err := send(1); err != nil || got.ErrorCode != 58 || got.ErrorMessage == nil ||
		*got.ErrorMessage != broken.Error() {
		t.Errorf("cluster that cannot be opened: got %+v, %v; want code 58 with the reason", got, err)
	}
}
