package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		return c.Engine.Checkpoint(ctx, to)
	}
	p.mu.Lock() // nobody opens it meanwhile
	defer p.mu.Unlock()
	if c, ok := p.running.Load().byUID[uid]; ok {
		return c.Engine.Checkpoint(ctx, to)
	}
	return copyClosed(ctx, p.folder(uid), to)
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
