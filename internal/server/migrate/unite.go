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

// Unite makes the folder of a cluster of a group's backup, with its shards and journals,
// into the store of a server that runs alone, and compares every topic and journal. The
// folder of one that is such a store is left as it is. A call that was cut short leaves
// nothing that could be used. The report hears of each step.
func Unite(ctx context.Context, dir string, report Report) error {
	var parts []string
	for exists(dir, sharded.Folder(len(parts))) {
		parts = append(parts, filepath.Join(dir, sharded.Folder(len(parts))))
	}
	if len(parts) == 0 {
		return nil
	}
	shards := len(parts)
	parts = append(parts, filepath.Join(dir, dataplane.JournalsFolder))
	if !exists(parts[shards]) {
		return errs.New(errs.Precondition, "the backup has shards of the cluster and not what its members share "+
			"(catalogue and schemas): the cluster was not open when it was taken; take another")
	}
	report.Step(fmt.Sprintf("making one store of %d shards", shards))
	one, aside := dir+".one", dir+".shards"
	err := pebble.Copy(ctx, pebble.CopyOptions{
		From: parts,
		To: []pebble.Part{{
			Dir: one, Topic: func(engine.TopicID) bool { return true }, Journal: func(string) bool { return true },
		}},
		Note: func([]byte) error { return nil }, Progress: report.Progress,
	})
	if err != nil {
		return err
	}
	report.Step("comparing")
	if err := sameAsParts(ctx, one, parts, report); err != nil {
		return err
	}
	return errors.Join(os.Rename(dir, aside), os.Rename(one, dir), os.RemoveAll(aside))
}

// sameAsParts compares a store with the shards and journals that it was made of.
func sameAsParts(ctx context.Context, one string, parts []string, report Report) error {
	got, err := pebble.Take(ctx, one, report.Progress)
	if err != nil {
		return err
	}
	topics, journals := map[engine.TopicID]pebble.TopicSurvey{}, map[string]pebble.JournalSurvey{}
	for i, part := range parts {
		has, err := pebble.Take(ctx, part, report.Progress)
		if err != nil {
			return err
		}
		for id, topic := range has.Topics {
			if sharded.ShardOf(id, len(parts)-1) != i {
				return errs.Newf(errs.Precondition,
					"shard %d has topic %d, which is not one of %d shards': a shard is missing", i, id, len(parts)-1)
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
