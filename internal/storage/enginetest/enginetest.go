// Package enginetest is the conformance suite that every engine must pass.
//
// It owns the tests of the contract in package engine and uses nothing else of an engine. The
// tests of an engine call Run with a function that creates a store, and History with a store
// that can simulate a power failure at any step. Properties of a single engine, such as file
// formats, failures and performance, are tested in that engine's package.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/storage/engine"
)

// Store is the storage of an engine under test.
type Store interface {
	// Open opens an engine on the store. The suite either closes the engine, or crashes the
	// store and does not use the engine any more.
	Open(t testing.TB) engine.Engine
	// Crash simulates a power failure while the engine is open: data that is not durable may
	// be lost.
	Crash(t testing.TB)
}

// Options configures the suite.
type Options struct {
	// RealTime is for engines that cannot run in a synctest bubble. A tick is then a
	// quarter of a second, with some tolerance for a busy machine; otherwise it is a second
	// of simulated time.
	RealTime bool
	// Timed runs the tests that depend on elapsed time also in real time. They take long and
	// need an idle machine. Their results do not depend on where an engine stores its log.
	Timed bool
	// Skip lists tests to skip, because the engine does not guarantee what they check; the
	// engine's own tests check its behaviour.
	Skip []string
}

// Run runs the suite. newStore returns an empty store.
func Run(t *testing.T, opts Options, newStore func(t testing.TB) Store) {
	runSections(t, opts, newStore, []testSection{
		{"topics", topicTests},
		{"log", logTests},
		{"batches", batchTests},
		{"subscriptions", subscriptionTests},
		{"receive", receiveTests},
		{"leases", leaseTests},
		{"lease owners", leaseOwnerTests},
		{"positions", positionTests},
		{"deduplication", dedupTests},
		{"dead letters", deadLetterTests},
		{"retention", retentionTests},
		{"trim", trimTests},
		{"filters", filterTests},
		{"durability", durabilityTests},
		{"journals", journalTests},
	})
}

// RunJournals runs only the tests of journals, for implementations that store nothing else.
// It calls only Journal and Close of the engines.
func RunJournals(t *testing.T, opts Options, newStore func(t testing.TB) Store) {
	runSections(t, opts, newStore, []testSection{{"journals", journalTests}})
}

// testSection contains the tests of one part of an engine.
type testSection struct {
	name  string
	tests []testCase
}

func runSections(t *testing.T, opts Options, newStore func(t testing.TB) Store, sections []testSection) {
	for _, section := range sections {
		t.Run(section.name, func(t *testing.T) {
			t.Parallel()
			for _, test := range section.tests {
				if slices.Contains(opts.Skip, test.name) {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					if opts.RealTime {
						v := newEnv(t, 250*time.Millisecond, newStore)
						v.slack, v.skipTimed = 2*time.Second, !opts.Timed
						test.run(v)
						return
					}
					synctest.Test(t, func(t *testing.T) {
						test.run(newEnv(t, time.Second, newStore))
					})
				})
			}
		})
	}
}

// testCase checks one guarantee of every engine.
type testCase struct {
	name string
	run  func(*env)
}

// env is an engine under test, with helpers that fail the test on an error.
type env struct {
	*testing.T
	engine.Engine
	ctx   context.Context
	store Store
	tick  time.Duration
	slack time.Duration // tolerance for late events

	selector selector

	skipTimed bool // skip tests that depend on elapsed time
}

func newEnv(t *testing.T, tick time.Duration, newStore func(t testing.TB) Store) *env {
	v := &env{T: t, ctx: context.Background(), store: newStore(t), tick: tick}
	v.open()
	t.Cleanup(func() {
		if err := v.Engine.Close(); err != nil {
			t.Errorf("close: got error %v, want none", err)
		}
	})
	return v
}

// reopen closes the engine and opens it again.
func (v *env) reopen() {
	v.Helper()
	v.ok(v.Engine.Close())
	v.open()
}

// crash simulates a power failure and opens the engine again.
func (v *env) crash() {
	v.Helper()
	v.store.Crash(v.T)
	v.open()
}

func (v *env) open() {
	v.Engine = v.store.Open(v.T)
	v.SelectWith(&v.selector)
}

func (v *env) ok(err error) {
	v.Helper()
	if err != nil {
		v.Fatalf("got error %v, want none", err)
	}
}

func (v *env) want(err, want error) {
	v.Helper()
	if !errors.Is(err, want) {
		v.Fatalf("got error %v, want %v", err, want)
	}
}

func (v *env) sleep(ticks float64) {
	if ticks >= 1 {
		v.needsTime()
	}
	time.Sleep(time.Duration(ticks * float64(v.tick)))
}

// needsTime skips a test that depends on elapsed time, unless Timed is set or time is
// simulated.
func (v *env) needsTime() {
	if v.skipTimed {
		v.Skip("depends on elapsed time; it runs with simulated time, and in real time when Timed is set")
	}
}

// eventually polls until cond returns true, for effects of background work.
func (v *env) eventually(what string, cond func() bool) {
	v.Helper()
	for range 400 {
		if cond() {
			return
		}
		v.sleep(0.25)
	}
	v.Fatalf("timeout, want %s", what)
}

// retainAll is the configuration of a topic that retains everything.
var retainAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

func retainAllParts(n int32) engine.TopicConfig {
	c := retainAll
	c.Partitions = n
	return c
}

func (v *env) topic(id engine.TopicID, config engine.TopicConfig) {
	v.Helper()
	v.ok(v.CreateTopic(v.ctx, id, config))
}

func (v *env) sub(id engine.TopicID, name string) {
	v.Helper()
	v.subAt(id, name, engine.Position{Kind: engine.Earliest})
}

func (v *env) subAt(id engine.TopicID, name string, at engine.Position) {
	v.Helper()
	v.ok(v.CreateSubscription(v.ctx, id, name, engine.SubscriptionConfig{Lease: 30 * v.tick}, at))
}

// put appends payloads to partition 0 and returns their ids.
func (v *env) put(id engine.TopicID, payloads ...string) []engine.MessageID {
	v.Helper()
	return v.putPart(id, 0, payloads...)
}

func (v *env) putPart(id engine.TopicID, part int32, payloads ...string) []engine.MessageID {
	v.Helper()
	var ids []engine.MessageID
	for _, p := range payloads {
		out, err := v.Append(v.ctx, id, part, []engine.Message{{Payload: []byte(p), SchemaVersion: engine.NoSchema}})
		v.ok(err)
		ids = append(ids, out[0].ID)
	}
	return ids
}

func (v *env) putMsg(id engine.TopicID, part int32, m engine.Message) engine.Appended {
	v.Helper()
	out, err := v.Append(v.ctx, id, part, []engine.Message{m})
	v.ok(err)
	return out[0]
}

// get receives available messages without waiting.
func (v *env) get(id engine.TopicID, name string, most int) []engine.Delivery {
	v.Helper()
	return v.getReq(id, name, engine.ReceiveRequest{Max: most, Partition: engine.AllPartitions})
}

func (v *env) getReq(id engine.TopicID, name string, req engine.ReceiveRequest) []engine.Delivery {
	v.Helper()
	out, err := v.Receive(v.ctx, id, name, req)
	v.ok(err)
	return out
}

// expect receives and compares the payloads, in order.
func (v *env) expect(id engine.TopicID, name string, want ...string) []engine.Delivery {
	v.Helper()
	got := v.get(id, name, 1000)
	v.same(payloads(got), want)
	return got
}

func (v *env) same(got, want []string) {
	v.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		v.Fatalf("got %v, want %v", got, want)
	}
}

func payloads(ds []engine.Delivery) []string {
	out := []string{}
	for _, d := range ds {
		out = append(out, string(d.Payload))
	}
	return out
}

func (v *env) settle(id engine.TopicID, name string, action engine.Action, ids ...engine.MessageID) {
	v.Helper()
	var s []engine.Settlement
	for _, m := range ids {
		s = append(s, engine.Settlement{ID: m, Action: action})
	}
	v.ok(v.Settle(v.ctx, id, name, s))
}

func (v *env) ack(id engine.TopicID, name string, ids ...engine.MessageID) {
	v.Helper()
	v.settle(id, name, engine.Ack, ids...)
}

func (v *env) stats(id engine.TopicID) engine.TopicStats {
	v.Helper()
	s, err := v.DescribeTopic(v.ctx, id)
	v.ok(err)
	return s
}

func (v *env) subStats(id engine.TopicID, name string) engine.SubscriptionStats {
	v.Helper()
	for _, s := range v.stats(id).Subscriptions {
		if s.Name == name {
			return s
		}
	}
	v.Fatalf("got no subscription %q, want one", name)
	return engine.SubscriptionStats{}
}

// read returns the payloads of a partition's messages that are not trimmed.
func (v *env) read(id engine.TopicID, part int32) []string {
	v.Helper()
	records, err := v.Read(v.ctx, id, engine.ReadRequest{Partition: part, Max: 10000})
	v.ok(err)
	out := []string{}
	for _, r := range records {
		out = append(out, string(r.Payload))
	}
	return out
}

func numbered(prefix string, from, to int) []string {
	out := []string{}
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}
