package migrate

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// maxRecord is the maximum size of a journal record in an ensemble, in bytes.
const maxRecord = 8<<20 - 4<<10

// parts returns the new stores of a cluster: one for each shard, and one for the journals
// that all members share.
func (m *migration) parts(c *Cluster) ([]pebble.CopyTarget, error) {
	var list []pebble.CopyTarget
	for i, seed := range c.Seeds {
		mark, err := seed.StorePosition()
		if err != nil {
			return nil, err
		}
		list = append(list, pebble.CopyTarget{
			Dir: m.newPath("clusters", c.UID, sharded.ShardDir(i)), LogPosition: mark,
			Topic: func(id engine.TopicID) bool { return sharded.ShardOf(id, len(c.Seeds)) == i },
			Journal: func(name string) bool {
				shard, ok := sharded.JournalShard(name, len(c.Seeds))
				return ok && shard == i
			},
		})
	}
	return append(list, pebble.CopyTarget{
		Dir:   m.newPath("clusters", c.UID, dataplane.JournalsDir),
		Topic: func(engine.TopicID) bool { return false },
		Journal: func(name string) bool {
			_, ok := sharded.JournalShard(name, len(c.Seeds))
			return !ok
		},
	}), nil
}

func (m *migration) source(c *Cluster) string { return filepath.Join(m.From, "clusters", c.UID) }

// copyCluster copies the store of a cluster to its shards.
func (m *migration) copyCluster(ctx context.Context, c *Cluster, n int) error {
	if c.Copied {
		return nil
	}
	m.Report.Step(fmt.Sprintf("cluster %s (%d of %d): copying to %d shards", c.Name, n+1, len(m.m.Clusters),
		len(c.Seeds)))
	parts, err := m.parts(c)
	if err != nil {
		return err
	}
	err = pebble.Copy(ctx, pebble.CopyOptions{
		From: []string{m.source(c)}, To: parts, Progress: m.Report.Progress,
		Checkpoint: copyCheckpoint{m, c},
	})
	if err != nil {
		return err
	}
	c.Copied, c.After = true, nil
	return m.save()
}

// copyCheckpoint stores in the migration how far the store of a cluster is copied.
type copyCheckpoint struct {
	migration *migration
	cluster   *Cluster
}

// After implements pebble.Checkpoint.
func (p copyCheckpoint) After() []byte { return p.cluster.After }

// Save implements pebble.Checkpoint.
func (p copyCheckpoint) Save(after []byte) error {
	p.cluster.After = after
	return p.migration.save()
}

// compareCluster compares every topic and journal of the new stores with the store of a
// cluster.
func (m *migration) compareCluster(ctx context.Context, c *Cluster, n int) error {
	m.Report.Step(fmt.Sprintf("cluster %s (%d of %d): comparing", c.Name, n+1, len(m.m.Clusters)))
	want, err := pebble.TakeSurvey(ctx, m.source(c), m.Report.Progress)
	if err != nil {
		return err
	}
	if want.LogPosition != nil {
		return errs.Newf(errs.Conflict, "store is a copy of a shard, so it is from a member of an ensemble")
	}
	for name, j := range want.Journals {
		if j.Largest > maxRecord {
			return errs.Newf(errs.Precondition, "journal %s has a record of %d bytes, but an ensemble accepts at "+
				"most %d", name, j.Largest, maxRecord)
		}
	}
	parts, err := m.parts(c)
	if err != nil {
		return err
	}
	var stores []Store
	topics, journals := 0, 0
	for i, part := range parts {
		got, err := pebble.TakeSurvey(ctx, part.Dir, m.Report.Progress)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("shard %d", i)
		if i == len(c.Seeds) {
			name = "journals"
		}
		if err := compareStore(got, want, part); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		topics, journals = topics+len(got.Topics), journals+len(got.Journals)
		stores = append(stores, summary(name, got))
	}
	if topics != len(want.Topics) || journals != len(want.Journals) {
		return fmt.Errorf("got %d topics and %d journals, want %d and %d: %w", topics, journals, len(want.Topics),
			len(want.Journals), errDifferent)
	}
	c.Stores = stores
	return m.save()
}

// compareStore compares a new store with its part of the source.
func compareStore(got, want *pebble.Survey, part pebble.CopyTarget) error {
	if string(got.LogPosition) != string(part.LogPosition) {
		return fmt.Errorf("mark of the store: %w", errDifferent)
	}
	for id, topic := range got.Topics {
		if topic != want.Topics[id] || !part.Topic(id) {
			return fmt.Errorf("topic %d: got %+v, want %+v: %w", id, topic, want.Topics[id], errDifferent)
		}
	}
	for name, journal := range got.Journals {
		if journal != want.Journals[name] || !part.Journal(name) {
			return fmt.Errorf("journal %s: got %+v, want %+v: %w", name, journal, want.Journals[name], errDifferent)
		}
	}
	return nil
}

// summary returns the totals of a store.
func summary(name string, of *pebble.Survey) Store {
	s := Store{Name: name, Topics: len(of.Topics), Journals: slices.Sorted(maps.Keys(of.Journals))}
	var sum uint64
	for _, t := range of.Topics {
		s.Messages += t.Messages
		s.Bytes += t.Bytes
		s.Subscriptions += t.Subscriptions
		sum ^= t.Sum
	}
	for _, j := range of.Journals {
		s.Records += j.Last
		sum ^= j.Sum
	}
	s.Sum = fmt.Sprintf("%016x", sum)
	return s
}
