package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"freshet/internal/base/errs"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Merge replaces the shards and journals of a cluster in the backup of an ensemble with one
// store for a single server, and compares every topic and journal. It leaves a folder that is
// already such a store unchanged. If it is interrupted, the folder cannot be used.
func Merge(ctx context.Context, dir string, report Report) error {
	var parts []string
	for exists(dir, sharded.ShardDir(len(parts))) {
		parts = append(parts, filepath.Join(dir, sharded.ShardDir(len(parts))))
	}
	if len(parts) == 0 {
		return nil
	}
	shards := len(parts)
	parts = append(parts, filepath.Join(dir, dataplane.JournalsDir))
	if !exists(parts[shards]) {
		return errs.New(errs.Precondition, "backup has the shards of the cluster, but not the catalogue and schemas, "+
			"because the cluster was not open during the backup; take another backup")
	}
	report.Step(fmt.Sprintf("merging %d shards into one store", shards))
	one, replaced := dir+".one", dir+".shards"
	err := pebble.Copy(ctx, pebble.CopyOptions{
		From: parts,
		To: []pebble.CopyTarget{{
			Dir: one, Topic: func(engine.TopicID) bool { return true }, Journal: func(string) bool { return true },
		}},
		Progress: report.Progress,
	})
	if err != nil {
		return err
	}
	report.Step("comparing")
	if err := compareWithParts(ctx, one, parts, report); err != nil {
		return err
	}
	return errors.Join(os.Rename(dir, replaced), os.Rename(one, dir), os.RemoveAll(replaced))
}

// compareWithParts compares a store with its source shards and journals.
func compareWithParts(ctx context.Context, one string, parts []string, report Report) error {
	got, err := pebble.TakeSurvey(ctx, one, report.Progress)
	if err != nil {
		return err
	}
	topics, journals := map[engine.TopicID]pebble.TopicSurvey{}, map[string]pebble.JournalSurvey{}
	for i, part := range parts {
		has, err := pebble.TakeSurvey(ctx, part, report.Progress)
		if err != nil {
			return err
		}
		for id, topic := range has.Topics {
			if sharded.ShardOf(id, len(parts)-1) != i {
				return errs.Newf(errs.Precondition,
					"shard %d has topic %d, which does not belong to it with %d shards; a shard is missing", i, id,
					len(parts)-1)
			}
			topics[id] = topic
		}
		maps.Copy(journals, has.Journals)
	}
	if !maps.Equal(got.Topics, topics) || !maps.Equal(got.Journals, journals) {
		return fmt.Errorf("got %d topics and %d journals, want %d and %d: %w", len(got.Topics), len(got.Journals),
			len(topics), len(journals), errDifferent)
	}
	return nil
}
