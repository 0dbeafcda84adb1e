package groups_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
)

// topics implements groups.Topics with the topics of a test.
type topics struct {
	revision uint64
	ids      map[string]engine.TopicID
	counts   map[engine.TopicID]int32
	hidden   map[string]bool // topics that members may not describe
}

func newTopics(counts map[string]int32) *topics {
	ts := &topics{
		ids: make(map[string]engine.TopicID), counts: make(map[engine.TopicID]int32),
		hidden: make(map[string]bool),
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		ts.set(name, counts[name])
	}
	return ts
}

// set creates a topic, or changes its number of partitions; 0 deletes it.
func (ts *topics) set(name string, partitions int32) {
	ts.revision++
	if partitions == 0 {
		delete(ts.counts, ts.ids[name])
		delete(ts.ids, name)
		return
	}
	if ts.ids[name] == 0 {
		ts.ids[name] = engine.TopicID(100 + ts.revision)
	}
	ts.counts[ts.ids[name]] = partitions
}

func (ts *topics) Revision() uint64                   { return ts.revision }
func (ts *topics) Partitions(id engine.TopicID) int32 { return ts.counts[id] }

func (ts *topics) Resolve(subscribed []string, pattern *regexp.Regexp) (found groups.Resolved, _ error) {
	for name, id := range ts.ids {
		named := slices.Contains(subscribed, name)
		if !ts.hidden[name] && (named || pattern != nil && pattern.MatchString(name)) {
			found.Topics = append(found.Topics, id)
		}
		if named || !ts.hidden[name] && pattern != nil && pattern.MatchString(name) {
			found.Reads = append(found.Reads, publicTopic(name))
		}
	}
	slices.SortFunc(found.Reads, func(a, b names.Topic) int { return strings.Compare(a.Local, b.Local) })
	return found, nil
}

func publicTopic(local string) names.Topic {
	return names.Topic{Namespace: names.PublicDefault, Local: local}
}

// consumer is a client of the consumer protocol. It revokes partitions immediately and confirms
// that with its next heartbeat.
type consumer struct {
	*harness
	ts           *topics
	id, instance string
	names        []string
	pattern      *string
	assignor     string
	epoch        int32
	owned        []groups.Partition
}

func (w *harness) consumer(ts *topics, id string, names ...string) *consumer {
	return &consumer{harness: w, ts: ts, id: id, names: names}
}

// full returns a heartbeat with all fields set.
func (c *consumer) full() *groups.ConsumerRequest {
	req := c.brief()
	req.RebalanceTimeout, req.Names, req.Pattern, req.Assignor = time.Minute, c.names, c.pattern, c.assignor
	req.Owned = append([]groups.Partition{}, c.owned...)
	return req
}

// brief returns a heartbeat without changes.
func (c *consumer) brief() *groups.ConsumerRequest {
	return &groups.ConsumerRequest{
		MemberID: c.id, InstanceID: c.instance, Epoch: c.epoch, ClientID: "client", ClientHost: "/127.0.0.1",
		RebalanceTimeout: -1, Topics: c.ts, Classic: c.ts,
	}
}

func (c *consumer) send(req *groups.ConsumerRequest) error {
	result, err := c.ConsumerHeartbeat(c.Context(), c.key, req)
	if err != nil {
		return err
	}
	c.epoch = result.Epoch
	if result.HasAssignment {
		c.owned = result.Assignment
	}
	return nil
}

// join joins, or joins again.
func (c *consumer) join() {
	c.Helper()
	c.epoch, c.owned = 0, nil
	c.wantError(c.send(c.full()), nil)
}

// beat sends a heartbeat with what the member owns.
func (c *consumer) beat() {
	c.Helper()
	c.wantError(c.send(c.full()), nil)
}

func (c *consumer) leave(epoch int32) error {
	req := c.brief()
	req.Epoch = epoch
	_, err := c.ConsumerHeartbeat(c.Context(), c.key, req)
	return err
}

// settle sends heartbeats until nothing changes, and checks that no two members ever own the same
// partition.
func (w *harness) settle(members ...*consumer) {
	w.Helper()
	for range 10 {
		before := fmt.Sprint(epochs(members))
		for _, m := range members {
			m.beat()
			w.exclusive(members...)
		}
		if d, err := w.Describe(w.key); err == nil && d.State == "Stable" && fmt.Sprint(epochs(members)) == before {
			return
		}
	}
	d, err := w.Describe(w.key)
	w.Fatalf("group is %+v (error %v) after many heartbeats, want it stable", d, err)
}

func epochs(members []*consumer) (all []string) {
	for _, m := range members {
		all = append(all, fmt.Sprint(m.id, m.epoch, m.owned))
	}
	return all
}

func (w *harness) exclusive(members ...*consumer) {
	w.Helper()
	owners := make(map[groups.Partition]string)
	for _, m := range members {
		for _, p := range m.owned {
			if other, ok := owners[p]; ok {
				w.Fatalf("%s and %s both have %v", other, m.id, p)
			}
			owners[p] = m.id
		}
	}
}

func (c *consumer) wantOwned(n int) {
	c.Helper()
	if len(c.owned) != n {
		c.Errorf("%s has %v, want %d partitions", c.id, c.owned, n)
	}
}

// journals returns the number of records in all journals.
func (w *harness) journals() (n uint64) {
	w.Helper()
	for i := range 16 {
		journal, err := w.engine.Journal(w.Context(), fmt.Sprintf("groups-%02d", i))
		if err != nil {
			w.Fatal(err)
		}
		last, err := journal.Last(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		n += last
	}
	return n
}
