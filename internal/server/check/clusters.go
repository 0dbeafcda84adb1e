package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/storage/pebble"
)

// clusters verifies the stores of all clusters. A member of an ensemble has the stores of its shards, and
// copies of the journals.
func (c directoryCheck) clusters(ctx context.Context) error {
	stores, err := os.ReadDir(c.cfg.Path("clusters"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, store := range stores {
		if !store.IsDir() || strings.HasSuffix(store.Name(), ".deleted") {
			continue
		}
		name := filepath.Join("clusters", store.Name())
		shards, err := c.find(name, "shard-[0-9][0-9][0-9]") // of a member of an ensemble
		if err != nil {
			return err
		}
		for _, shard := range shards {
			c.closed(shard, closedRemedy)
			if err := c.store(ctx, shard, c.remedies.store); err != nil {
				return err
			}
		}
		if err := c.copies(ctx, name); err != nil {
			return err
		}
		if len(shards) > 0 || c.remedies.member {
			continue
		}
		c.closed(name, closedRemedy)
		if err := c.store(ctx, name, c.remedies.store); err != nil {
			return err
		}
	}
	return nil
}

// find returns the files of a folder that match a pattern, relative to the data directory.
func (c directoryCheck) find(folder, pattern string) ([]string, error) {
	found, err := filepath.Glob(c.cfg.Path(folder, pattern))
	for i := range found {
		found[i] = filepath.Join(folder, strings.TrimPrefix(found[i], c.cfg.Path(folder)))
	}
	return found, err
}

func (c directoryCheck) store(ctx context.Context, name, remedy string) error {
	damaged := false
	done, err := pebble.Check(ctx, c.cfg.Path(name), func(file, problem string) {
		damaged = true
		c.report.Damaged(filepath.Join(name, file), problem, remedy)
	}, func(done, total int64) { c.report.Progress(name, done, total) })
	if err != nil {
		return fmt.Errorf("checking %s: %w", name, err)
	}
	if !damaged {
		c.report.Part(name, fmt.Sprintf("%d messages, %d journal records, %d tables", done.Messages,
			done.Records, done.Tables))
	}
	return nil
}

// copies verifies what a member has of a cluster besides the stores: copies of journals, checkpoints for
// other members, and the positions that it has acknowledged.
func (c directoryCheck) copies(ctx context.Context, name string) error {
	journals, err := c.find(name, filepath.Join("journal-copies", "*"+journal.CopySuffix))
	if err != nil {
		return err
	}
	for _, file := range journals {
		if position, err := journal.VerifyCopy(c.cfg.Path(file)); err != nil {
			c.report.Damaged(file, err.Error(), copyRemedy)
		} else {
			c.report.Part(file, fmt.Sprintf("records of a journal up to position %d", position))
		}
	}
	marks, err := c.find(name, "shard-[0-9][0-9][0-9]"+replicated.MarkSuffix)
	if err != nil {
		return err
	}
	for _, file := range marks {
		if err := replicated.VerifyMark(c.cfg.Path(file)); err != nil {
			c.report.Damaged(file, err.Error(), markRemedy)
		}
	}
	checkpoints, err := c.find(name, "shard-[0-9][0-9][0-9]-checkpoints/*")
	if err != nil {
		return err
	}
	for _, dir := range checkpoints {
		complete, err := c.find(dir, "marker.manifest.*")
		if err != nil {
			return err
		}
		if len(complete) == 0 { // a crash has interrupted its creation
			c.report.Part(dir, "incomplete checkpoint, which the next start removes")
			continue
		}
		c.closed(dir, checkpointRemedy)
		if err := c.store(ctx, dir, checkpointRemedy); err != nil {
			return err
		}
	}
	return nil
}
