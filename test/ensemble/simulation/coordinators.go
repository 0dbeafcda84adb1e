package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"time"

	topicnames "freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
)

const (
	groupCount     = 3 // groups without members, for which clients commit offsets
	partitionCount = 6 // of the topic that groups consume
	consumerCount  = 3 // members of consumed
)

// consumed is the group that has members.
var consumed = groups.Key{Tenant: "t", Group: "consumed"}

// committed returns a group without members.
func committed(i int) groups.Key { return groups.Key{Tenant: "t", Group: fmt.Sprint("committed-", i)} }

// shardOf returns the shard that has the journal of a group.
func shardOf(key groups.Key) int { return groups.JournalOf(key) % shardCount }

// allGroups returns all groups.
func allGroups() []groups.Key {
	list := []groups.Key{consumed}
	for i := range groupCount {
		list = append(list, committed(i))
	}
	return list
}

// coordination begins and ends the coordination of a shard's groups with the ownership of the shard, as the data
// plane does. It implements replicated.Ownership.
type coordination struct {
	m     *member
	shard int
	log   *slog.Logger

	mu     sync.Mutex // protects cancel; a leaf
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// journals returns the journals of the shard's groups.
func (c *coordination) journals() (list []int) {
	for _, key := range allGroups() {
		if shardOf(key) == c.shard {
			list = append(list, groups.JournalOf(key))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Acquired implements replicated.Ownership.
func (c *coordination) Acquired(owned engine.Engine) {
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	c.cancel = cancel
	c.work.Go(func() {
		for _, i := range c.journals() {
			for ctx.Err() == nil {
				err := c.m.groups.AcquireJournal(ctx, owned, i)
				if err == nil {
					break
				}
				c.log.Info("taking over groups failed", slog.Int("journal", i), slog.Any("error", err))
				time.Sleep(100 * time.Millisecond)
			}
		}
	})
}

// Lost implements replicated.Ownership.
func (c *coordination) Lost() {
	c.mu.Lock()
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	c.mu.Unlock()
	c.work.Wait()
	for _, i := range c.journals() {
		if err := c.m.groups.ReleaseJournal(i); err != nil {
			c.log.Info("giving up groups failed", slog.Int("journal", i), slog.Any("error", err))
		}
	}
}

// coordinates reports whether the member answers for a group.
func (m *member) coordinates(key groups.Key) bool {
	return m.shards[shardOf(key)].Owner().Member == m.name && m.lease.Alive() &&
		slices.Contains(m.groups.Journals(), groups.JournalOf(key))
}

// trusted reports whether what the member answered now must be right: it has not crashed, and nobody has ended
// its lease early.
func (m *member) trusted() bool {
	return m.lease.Alive() && !m.crashed.Load() && time.Now().UnixNano() >= m.staleUntil.Load()
}

// coordinator returns a member that answers for a group, or nil. Two members at a time are a violation.
func (w *world) coordinator(key groups.Key, random *rand.Rand) *member {
	var all []*member
	trusted := 0
	for _, m := range w.running() {
		if m.coordinates(key) {
			all = append(all, m)
			if m.trusted() {
				trusted++
			}
		}
	}
	if trusted > 1 {
		w.violation("group %s has %d coordinators", key.Group, trusted)
	}
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}

// offsets are what one client has committed for the partitions of a group.
type offsets struct {
	tried, acked int64
}

// commit commits growing offsets for a group until the context ends, and reads them. An acknowledged offset must
// be there, or a later one that was tried.
func (w *world) commit(ctx context.Context, i int, random *rand.Rand) {
	key, at := committed(i), groups.PartitionOf(uint64(topic), 0)
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
		m := w.coordinator(key, random)
		if m == nil {
			continue
		}
		if trusted := m.trusted(); random.IntN(4) == 0 {
			if found, err := m.groups.Committed(key); err == nil && trusted && m.trusted() {
				w.compareOffset(i, "read at "+m.name, found)
			}
			continue
		}
		w.mu.Lock()
		w.offsets[i].tried++
		next := w.offsets[i].tried
		w.mu.Unlock()
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := m.groups.Commit(call, key, &groups.CommitRequest{
			Generation: -1, Offsets: map[groups.Partition]groups.Offset{at: {Offset: next, LeaderEpoch: -1}},
		})
		cancel()
		if err == nil && !m.crashed.Load() {
			w.mu.Lock()
			w.offsets[i].acked = next
			w.commits++
			w.mu.Unlock()
		}
	}
}

// compareOffset checks the committed offset of a group.
func (w *world) compareOffset(i int, where string, found groups.Committed) {
	w.mu.Lock()
	want := w.offsets[i]
	w.mu.Unlock()
	got, _ := found.Offset(groups.PartitionOf(uint64(topic), 0))
	if got.Offset < want.acked || got.Offset > want.tried {
		w.violation("group %d, %s: committed offset is %d, acknowledged %d, tried %d", i, where, got.Offset,
			want.acked, want.tried)
	}
}

// consume is a member of a group until the context ends. It revokes partitions at once. No two members may have
// the same partition.
func (w *world) consume(ctx context.Context, number int, random *rand.Rand) {
	id := fmt.Sprint("consumer-", number)
	epoch := int32(0)
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		m := w.coordinator(consumed, random)
		if m == nil {
			continue
		}
		if epoch > 0 && random.IntN(30) == 0 { // it leaves, and joins again
			epoch = -1
			w.assign(id, nil)
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		result, err := m.groups.ConsumerHeartbeat(call, consumed, &groups.ConsumerRequest{
			MemberID: id, Epoch: epoch, ClientID: id, ClientHost: "/127.0.0.1", RebalanceTimeout: time.Minute,
			Names: []string{"consumed"}, Owned: w.owned(id), Topics: fixedTopics{},
		})
		cancel()
		switch {
		case epoch < 0:
			epoch = 0
		case m.crashed.Load(): // the response is lost
		case errors.Is(err, groups.ErrFencedEpoch), errors.Is(err, groups.ErrUnknownMember):
			epoch = 0
			w.assign(id, nil)
		case err == nil:
			epoch = result.Epoch
			if result.HasAssignment {
				w.assign(id, result.Assignment)
			}
		}
	}
}

// owned returns the partitions of a consumer.
func (w *world) owned(id string) []groups.Partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []groups.Partition{}
	for p, owner := range w.partitions {
		if owner == id {
			list = append(list, p)
		}
	}
	return list
}

// assign sets the partitions of a consumer.
func (w *world) assign(id string, list []groups.Partition) {
	w.mu.Lock()
	maps.DeleteFunc(w.partitions, func(_ groups.Partition, owner string) bool { return owner == id })
	var other string
	for _, p := range list {
		if was, ok := w.partitions[p]; ok {
			other = was
		}
		w.partitions[p] = id
		w.assignments++
	}
	w.mu.Unlock()
	if other != "" {
		w.violation("group %s: %s and %s have the same partition", consumed.Group, other, id)
	}
}

// fixedTopics are the topics that groups consume. It implements groups.Topics.
type fixedTopics struct{}

// Revision implements groups.Topics.
func (fixedTopics) Revision() uint64 { return 1 }

// Partitions implements groups.Topics.
func (fixedTopics) Partitions(engine.TopicID) int32 { return partitionCount }

// Resolve implements groups.Topics.
func (fixedTopics) Resolve([]string, *regexp.Regexp) (groups.Resolved, error) {
	return groups.Resolved{
		Topics: []engine.TopicID{topic},
		Reads:  []topicnames.Topic{{Namespace: topicnames.PublicDefault, Local: "consumed"}},
	}, nil
}

// finishGroups checks the committed offsets in the end. Groups in a closed shard are not checked.
func (w *world) finishGroups() {
	for i := range groupCount {
		key := committed(i)
		if w.closed[shardOf(key)] {
			continue
		}
		if !w.finishGroup(i, key) {
			w.violation("group %s has no coordinator in the end", key.Group)
		}
	}
}

func (w *world) finishGroup(i int, key groups.Key) bool {
	for range 300 {
		for _, m := range w.running() {
			if !m.coordinates(key) {
				continue
			}
			if found, err := m.groups.Committed(key); err == nil {
				w.compareOffset(i, "in the end at "+m.name, found)
				return true
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}
