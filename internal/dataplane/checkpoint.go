package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"freshet/internal/base/atomicfile"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Checkpoint copies the stores of all clusters into directories below dir, by UID, and
// returns the UIDs. Each copy is consistent; the copies of two clusters may be of different
// moments. A store that is not open, because it is damaged or its instance is not ready, is
// copied as it is. begin is called before each cluster is copied.
func (p *Plane) Checkpoint(ctx context.Context, dir string, begin func(uid string, n, of int)) ([]string, error) {
	stored, err := p.stored()
	if err != nil {
		return nil, err
	}
	var copied []string
	for i, uid := range stored {
		begin(uid, i+1, len(stored))
		if err := p.checkpoint(ctx, uid, filepath.Join(dir, uid)); err != nil {
			if !p.Stored(uid) { // the cluster was deleted meanwhile
				if err := os.RemoveAll(filepath.Join(dir, uid)); err != nil {
					return nil, err
				}
				continue
			}
			return nil, fmt.Errorf("copying the store of cluster %s: %w", p.describe(uid), err)
		}
		copied = append(copied, uid)
	}
	return copied, nil
}

// stored returns the clusters that have data.
func (p *Plane) stored() ([]string, error) {
	entries, err := os.ReadDir(p.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var uids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasSuffix(e.Name(), deletedSuffix) {
			uids = append(uids, e.Name())
		}
	}
	return uids, nil
}

// Stored reports whether a cluster has data, open or not.
func (p *Plane) Stored(uid string) bool {
	_, err := os.Stat(p.dir(uid))
	return err == nil
}

// describe returns a readable name of a cluster.
func (p *Plane) describe(uid string) string {
	if c, ok := p.running.Load().byUID[uid]; ok {
		return c.Organization + "/" + c.Name
	}
	return uid
}

func (p *Plane) checkpoint(ctx context.Context, uid, to string) error {
	if c, ok := p.running.Load().byUID[uid]; ok {
		return c.checkpoint(ctx, to)
	}
	p.mu.Lock() // so that the cluster is not opened during the copy
	defer p.mu.Unlock()
	if c, ok := p.running.Load().byUID[uid]; ok {
		return c.checkpoint(ctx, to)
	}
	return copyClosed(ctx, p.dir(uid), to)
}

// JournalsDir is the subdirectory of a cluster's directory with a store of the journals
// that members share: in a copy, and in data to be imported into an ensemble.
const JournalsDir = "journals"

// checkpoint copies a running cluster: its store, or in an ensemble its shards and then the
// journals that members share, so that these are never older than the messages that need
// them.
func (c *Cluster) checkpoint(ctx context.Context, to string) error {
	if err := c.Engine.Checkpoint(ctx, to); err != nil {
		return err
	}
	return c.journals.save(ctx, filepath.Join(to, JournalsDir))
}

// clusterJournals are the journals of a cluster that are not in its engine.
type clusterJournals interface {
	// save copies the journals into a store in a new directory.
	save(ctx context.Context, dir string) error
	// Lost returns an engine.ErrJournalLost while one of them has lost records and cannot be rebuilt.
	Lost() error
	Close()
}

// storedJournals implements clusterJournals for a single server, whose engine has all journals.
type storedJournals struct{}

func (storedJournals) save(context.Context, string) error { return nil }

// Lost implements clusterJournals.
func (storedJournals) Lost() error { return nil }

// Close implements clusterJournals.
func (storedJournals) Close() {}

// memberJournals implements clusterJournals for a member of an ensemble.
type memberJournals struct{ Journals }

func (j memberJournals) save(ctx context.Context, dir string) error {
	for try := 1; ; try++ {
		err := j.copyTo(ctx, dir)
		// ErrCompacted: a snapshot replaced the records during the copy.
		if err == nil || try == maxJournalAttempts || !errors.Is(err, engine.ErrCompacted) {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
}

const maxJournalAttempts = 5

// copyTo copies the journals into a store.
func (j memberJournals) copyTo(ctx context.Context, dir string) (err error) {
	names, err := j.Names(ctx)
	if err != nil {
		return err
	}
	store, err := pebble.Open(dir, pebble.Options{MinFreeBytes: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, name := range names {
		from, err := j.Journal(ctx, name)
		if err != nil {
			return err
		}
		if err := store.SeedJournal(ctx, name, from); err != nil {
			return fmt.Errorf("copying journal %q: %w", name, err)
		}
	}
	return nil
}

// copyClosed copies the directory of a store that is not open. It uses hard links for
// tables where possible, because tables never change.
func copyClosed(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, dirPermission)
		case !d.Type().IsRegular() || name == "LOCK":
			return nil
		case strings.HasSuffix(name, ".sst") && os.Link(at, target) == nil:
			return nil
		}
		return atomicfile.Copy(at, target)
	})
}
