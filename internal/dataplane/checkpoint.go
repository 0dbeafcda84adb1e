package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Checkpoint copies the stores of all clusters into folders below dir, by UID, and
// returns these. Each copy is of one moment; two clusters share no moment, as they
// share nothing else. A store that is not open, be it damaged or waiting for its
// instance, is copied as it is. begin is told of each cluster before its turn.
func (p *Plane) Checkpoint(ctx context.Context, dir string, begin func(uid string, n, of int)) ([]string, error) {
	stored, err := p.stored()
	if err != nil {
		return nil, err
	}
	var copied []string
	for i, uid := range stored {
		begin(uid, i+1, len(stored))
		if err := p.checkpoint(ctx, uid, filepath.Join(dir, uid)); err != nil {
			if !p.Stored(uid) { // deleted meanwhile
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

// stored lists the clusters that have data.
func (p *Plane) stored() ([]string, error) {
	entries, err := os.ReadDir(p.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("looking for clusters: %w", err)
	}
	var uids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasSuffix(e.Name(), deletedSuffix) {
			uids = append(uids, e.Name())
		}
	}
	return uids, nil
}

// Stored says whether a cluster has data, open or not.
func (p *Plane) Stored(uid string) bool {
	_, err := os.Stat(p.folder(uid))
	return err == nil
}

// describe names a cluster for people.
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
	p.mu.Lock() // nobody opens it meanwhile
	defer p.mu.Unlock()
	if c, ok := p.running.Load().byUID[uid]; ok {
		return c.checkpoint(ctx, to)
	}
	return copyClosed(ctx, p.folder(uid), to)
}

// JournalsFolder is the part of a cluster's folder with the journals that members
// share, in a store: of a copy, and of what is to be brought into a group.
const JournalsFolder = "journals"

// checkpoint copies a running cluster: its store, or in a group its shards and then
// what the members share, which is never older than the messages that need it.
func (c *Cluster) checkpoint(ctx context.Context, to string) error {
	if err := c.Engine.Checkpoint(ctx, to); err != nil || c.shared == nil {
		return err
	}
	folder := filepath.Join(to, JournalsFolder)
	for try := 1; ; try++ {
		err := c.shared.saveJournals(ctx, folder)
		if err == nil || try == journalTries || !errors.Is(err, engine.ErrCompacted) { // by a snapshot meanwhile
			return err
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
}

const journalTries = 5

// saveJournals copies the journals that members share into a store.
func (s *shared) saveJournals(ctx context.Context, dir string) (err error) {
	names, err := s.journals.Names(ctx)
	if err != nil {
		return err
	}
	store, err := pebble.Open(dir, pebble.Options{MinFreeBytes: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, name := range names {
		from, err := s.journals.Journal(ctx, name)
		if err != nil {
			return err
		}
		if err := store.SeedJournal(ctx, name, from); err != nil {
			return fmt.Errorf("copying journal %s: %w", name, err)
		}
	}
	return nil
}

// copyClosed copies the folder of a store that is not open. Tables never change,
// so they are linked where that is possible.
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
			return os.MkdirAll(target, folderPermission)
		case !d.Type().IsRegular() || name == "LOCK":
			return nil
		case strings.HasSuffix(name, ".sst") && os.Link(at, target) == nil:
			return nil
		}
		return copyFile(at, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}
