package kafkaapi_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// Values that no response may contain without a permission. Requests never contain them.
const (
	secretTopic = "hidden-topic" // the name of a topic
	secretValue = "hidden-value" // in records, and in the configuration of topics
	secretGroup = "hidden-group" // the name of a group, and in its committed metadata
)

// principal is an account with at most one role, and the values that its responses may contain.
type principal struct {
	name           string
	role           string
	where          *access.Restriction
	allowedSecrets []string
}

var principals = []principal{
	{name: "nobody"},
	{"producer", "topic-producer", &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"}, nil},
	{"consumer", "topic-consumer", &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"}, nil},
	{"owner", "topic-owner", &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"}, nil},
	{"elsewhere", "namespace-owner", &access.Restriction{Tenant: "sales", Namespace: "eu"}, nil},
}

// secrets creates the secret data, and a topic that the roles are granted on.
func (w *harness) secrets() {
	w.Helper()
	ctx := short(w.T)
	admin := kadm.NewClient(w.client())
	secret := kadm.StringPtr("123454321")
	w.ok(w.broker.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: "sales"}))
	w.ok(w.broker.Catalogue.CreateNamespace(ctx, names.Namespace{Tenant: "sales", Name: "eu"}, messaging.Policies{}))
	for _, topic := range []string{"orders", secretTopic, "mine"} {
		config := map[string]*string{"retention.ms": secret}
		if topic == "mine" {
			config = nil
		}
		if _, err := admin.CreateTopic(ctx, 2, 1, config, topic); err != nil {
			w.Fatal(err)
		}
	}
	producer := w.client()
	for _, topic := range []string{"orders", secretTopic} {
		w.ok(producer.ProduceSync(ctx,
			&kgo.Record{Topic: topic, Key: []byte(secretValue), Value: []byte(secretValue)}).FirstErr())
	}
	for _, group := range []string{"team", secretGroup} {
		offsets := make(kadm.Offsets)
		for _, topic := range []string{"orders", secretTopic} {
			offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 1, LeaderEpoch: -1, Metadata: secretValue})
		}
		w.ok(admin.CommitAllOffsets(ctx, group, offsets))
	}
}

// state returns everything that the principals must not change.
func (w *harness) state(ctx context.Context) string {
	w.Helper()
	var b strings.Builder
	for _, name := range []string{"orders", secretTopic} {
		topic, err := w.broker.Kafka.KafkaTopic(ctx, publicTopic(name))
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		fmt.Fprintln(&b, name, topic.Partitions())
		for _, c := range topic.Configs() {
			if c.Set {
				fmt.Fprintln(&b, " ", c.Name, c.Value)
			}
		}
		for p := range topic.Partitions() {
			extent, err := topic.Read(ctx, p, 0, nil)
			fmt.Fprintln(&b, " ", p, extent, err)
		}
	}
	for _, group := range []string{"team", secretGroup} {
		var offsets []string
		committed, err := w.cluster.Groups.Committed(groups.Key{Tenant: "public", Group: group})
		w.ok(err)
		committed.Each(func(at groups.Partition, o groups.Offset) {
			if topic, err := w.broker.Kafka.KafkaTopicByID(ctx, uint64(at.Topic)); err == nil &&
				topic.Name().Local != "mine" {
				offsets = append(offsets, fmt.Sprint(topic.Name().Local, at.Partition, o.Offset, o.Metadata))
			}
		})
		slices.Sort(offsets)
		fmt.Fprintln(&b, group, offsets)
	}
	return b.String()
}

// TestAttackEveryAPIAsEveryPrincipal sends every API in every version, with existing and missing names,
// as callers with a role on something else or with none. It checks that no response reveals, and no
// request changes, anything beyond the role.
func TestAttackEveryAPIAsEveryPrincipal(t *testing.T) {
	t.Parallel()
	rounds := 3
	if tally.Long() {
		rounds = 100
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	attempts, successes := 0, 0
	for n, principal := range principals {
		w := newHarness(t)
		w.secrets()
		if principal.role != "" {
			w.ok(w.policy.SetBinding(access.Binding{
				Organization: organization, Name: principal.name, RoleKind: "ClusterRole", Role: principal.role,
				Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: principal.name}},
				Restriction: principal.where,
			}))
		}
		before := w.state(t.Context())
		if !strings.Contains(before, "123454321") || !strings.Contains(before, secretValue) {
			t.Fatalf("initial state: got %s, want it to contain the secrets", before)
		}
		f := &filler{Rand: rand.New(rand.NewPCG(seed, uint64(n)))}
		r := &rawClient{harness: w, token: w.account(principal.name), responses: make(map[int16]int)}
		r.open()
		answer, err := r.exchange(kmsg.NewPtrApiVersionsRequest(), nil)
		w.ok(err)
		advertised, _ := answer.(*kmsg.ApiVersionsResponse)
		for _, api := range advertised.ApiKeys {
			if api.ApiKey == 17 || api.ApiKey == 36 {
				continue // SASL APIs are slow
			}
			for version := api.MinVersion; version <= api.MaxVersion; version++ {
				for range rounds {
					attempts++
					if disclosed := r.revealedSecret(f, api.ApiKey, version,
						principal.allowedSecrets); disclosed != "" {
						successes++
						t.Errorf("%s got %s from API %d version %d", principal.name, disclosed, api.ApiKey, version)
					}
				}
			}
			attempts++
			if after := w.state(t.Context()); after != before {
				successes++
				t.Errorf("%s changed by API %d: got %s, want %s", principal.name, api.ApiKey, after, before)
				before = after
			}
		}
		r.close()
	}
	tally.Attack(t, "every API of the Kafka protocol as callers without the permission", attempts, successes)
}

// revealedSecret sends a random request and returns a secret that the response reveals.
func (r *rawClient) revealedSecret(f *filler, key, version int16, allowed []string) string {
	r.Helper()
	f.version = version
	request := kmsg.RequestForKey(key)
	request.SetVersion(version)
	f.fill(reflect.ValueOf(request).Elem(), "")
	response, err := r.exchange(request, nil)
	if err != nil {
		r.close()
		r.open()
		return ""
	}
	if response == nil {
		return "" // no response was expected
	}
	text := response.AppendTo(nil)
	for _, mark := range []string{secretTopic, secretValue, secretGroup, "123454321"} {
		if bytes.Contains(text, []byte(mark)) && !slices.Contains(allowed, mark) {
			return mark
		}
	}
	return ""
}
