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

// What nobody is told without a permission. Requests never contain these words.
const (
	markTopic = "hidden-topic" // the name of a topic
	markValue = "hidden-value" // in records, and in the configuration of topics
	markGroup = "hidden-group" // the name of a group, and in what it has committed
)

// principal is somebody with few roles, or none, and what may be in its answers.
type principal struct {
	name  string
	role  string
	where *access.Restriction
	sees  []string
}

var principals = []principal{
	{name: "nobody"},
	{"producer", "topic-producer", &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"}, nil},
	// Who may consume something of a tenant may know its groups.
	{
		"consumer", "topic-consumer", &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"},
		[]string{markGroup},
	},
	{
		"owner", "topic-owner", &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"},
		[]string{markGroup},
	},
	{"elsewhere", "namespace-owner", &access.Restriction{Tenant: "sales", Namespace: "eu"}, nil},
}

// secrets makes what is to be kept, in a world with a topic that everybody with a role
// has it on.
func (w *world) secrets() {
	w.Helper()
	ctx := short(w.T)
	admin := kadm.NewClient(w.client())
	secret := kadm.StringPtr("123454321")
	w.ok(w.cluster.Broker.CreateTenant(ctx, messaging.Tenant{Name: "sales"}))
	w.ok(w.cluster.Broker.CreateNamespace(ctx, names.Namespace{Tenant: "sales", Name: "eu"}, messaging.Policies{}))
	for _, topic := range []string{"orders", markTopic, "mine"} {
		config := map[string]*string{"retention.ms": secret}
		if topic == "mine" {
			config = nil
		}
		if _, err := admin.CreateTopic(ctx, 2, 1, config, topic); err != nil {
			w.Fatal(err)
		}
	}
	producer := w.client()
	for _, topic := range []string{"orders", markTopic} {
		w.ok(producer.ProduceSync(ctx,
			&kgo.Record{Topic: topic, Key: []byte(markValue), Value: []byte(markValue)}).FirstErr())
	}
	for _, group := range []string{"team", markGroup} {
		offsets := make(kadm.Offsets)
		for _, topic := range []string{"orders", markTopic} {
			offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 1, LeaderEpoch: -1, Metadata: markValue})
		}
		w.ok(admin.CommitAllOffsets(ctx, group, offsets))
	}
}

// state is what nobody of them may change.
func (w *world) state(ctx context.Context) string {
	w.Helper()
	var b strings.Builder
	for _, name := range []string{"orders", markTopic} {
		topic, err := w.cluster.Broker.StreamTopic(ctx, publicTopic(name))
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		fmt.Fprintln(&b, name, topic.Partitions())
		for _, c := range topic.StreamConfigs() {
			if c.Set {
				fmt.Fprintln(&b, " ", c.Name, c.Value)
			}
		}
		for p := range topic.Partitions() {
			extent, err := topic.Read(ctx, p, 0, nil)
			fmt.Fprintln(&b, " ", p, extent, err)
		}
	}
	for _, group := range []string{"team", markGroup} {
		var offsets []string
		committed, err := w.cluster.Groups.Committed(groups.Key{Tenant: "public", Group: group})
		w.ok(err)
		committed.Each(func(at groups.Partition, o groups.Offset) {
			if topic, err := w.cluster.Broker.StreamTopicByID(ctx, uint64(at.Topic)); err == nil &&
				topic.Name().Local != "mine" {
				offsets = append(offsets, fmt.Sprint(topic.Name().Local, at.Partition, o.Offset, o.Metadata))
			}
		})
		slices.Sort(offsets)
		fmt.Fprintln(&b, group, offsets)
	}
	return b.String()
}

// TestAttackEveryAPIAsEverybody sends every API in every version, with names of what
// exists and what does not, as callers with a role on something else or with none: no
// answer tells, and no request changes, what the role may not.
func TestAttackEveryAPIAsEverybody(t *testing.T) {
	t.Parallel()
	rounds := 3
	if tally.Long() {
		rounds = 100
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	attempts, successes := 0, 0
	for n, who := range principals {
		w := newWorld(t)
		w.secrets()
		if who.role != "" {
			w.ok(w.policy.SetBinding(access.Binding{
				Organization: organization, Name: who.name, RoleKind: "ClusterRole", Role: who.role,
				Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: who.name}},
				Restriction: who.where,
			}))
		}
		before := w.state(t.Context())
		if !strings.Contains(before, "123454321") || !strings.Contains(before, markValue) {
			t.Fatalf("before anything: got %s, want the secrets in it", before)
		}
		f := &filler{Rand: rand.New(rand.NewPCG(seed, uint64(n)))}
		r := &wire{world: w, token: w.account(who.name), answered: make(map[int16]int)}
		r.open()
		answer, err := r.exchange(kmsg.NewPtrApiVersionsRequest(), nil)
		w.ok(err)
		advertised, _ := answer.(*kmsg.ApiVersionsResponse)
		for _, api := range advertised.ApiKeys {
			if api.ApiKey == 17 || api.ApiKey == 36 {
				continue // they are for strangers, and slow
			}
			for version := api.MinVersion; version <= api.MaxVersion; version++ {
				for range rounds {
					attempts++
					if told := r.tells(f, api.ApiKey, version, who.sees); told != "" {
						successes++
						t.Errorf("%s is told of %s by API %d version %d", who.name, told, api.ApiKey, version)
					}
				}
			}
			attempts++
			if after := w.state(t.Context()); after != before {
				successes++
				t.Errorf("%s changed by API %d: got %s, want %s", who.name, api.ApiKey, after, before)
				before = after
			}
		}
		r.close()
	}
	tally.Attack(t, "every API of the stream protocol as callers without the permission", attempts, successes)
}

// tells sends a made-up request and returns what of the secrets is in the answer.
func (r *wire) tells(f *filler, key, version int16, allowed []string) string {
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
		return "" // none was wanted
	}
	text := response.AppendTo(nil)
	for _, mark := range []string{markTopic, markValue, markGroup, "123454321"} {
		if bytes.Contains(text, []byte(mark)) && !slices.Contains(allowed, mark) {
			return mark
		}
	}
	return ""
}
