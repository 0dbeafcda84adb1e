// Package restore creates a data directory from a backup (ops/backup), and reports to the first
// start after that which clusters were not in the backup. It stands beside package server,
// because it moves the data of a whole system: etcd, the stores of clusters and the keys.
// Package staging makes the copy that a backup is written from. A restore locks the data
// directory (ops/datadir); the package has no other locks.
package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/privatefile"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/internal/ops/backup"
	"freshet/internal/ops/datadir"
	"freshet/internal/server/migrate"
)

// Folder exists in a data directory while a backup is being restored to it. A server
// does not start on such a directory, so it never uses an incomplete restore.
const Folder = ".restoring"

// CheckFinished returns an error if a restore to a data directory did not finish.
func CheckFinished(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, Folder)); err == nil {
		return fmt.Errorf("data directory %s is not complete, because a restore to it did not finish; run freshet "+
			"restore again", dir)
	}
	return nil
}

// restoration is one call of Directory.
type restoration struct{ backup.RestoreOptions }

// Directory creates a data directory from a backup. It rejects a directory that is not empty,
// unless an earlier restore did not finish there: then it starts again from the beginning.
func Directory(ctx context.Context, opts backup.RestoreOptions) (_ *backup.Manifest, err error) {
	r := &restoration{opts}
	if err := r.checkEmpty(); err != nil {
		return nil, err
	}
	held, err := datadir.Acquire(r.DataDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if err := r.checkEmpty(); err != nil { // again, because another process may have used it before the lock
		return nil, err
	}
	into := filepath.Join(r.DataDir, Folder)
	if err := errors.Join(r.clear(), os.Mkdir(into, 0o700), atomicfile.SyncDir(r.DataDir)); err != nil {
		return nil, fmt.Errorf("preparing the data directory: %w", err)
	}
	m, err := r.extract(ctx, into)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(into))
	}
	return m, r.publish(into)
}

// ignoredNames are the names that an empty data directory may contain.
var ignoredNames = map[string]bool{"LOCK": true, "lost+found": true}

func (r *restoration) checkEmpty() error {
	entries, err := os.ReadDir(r.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	used := ""
	for _, e := range entries {
		if e.Name() == Folder {
			return nil
		}
		if !ignoredNames[e.Name()] {
			used = e.Name()
		}
	}
	if used != "" {
		return errs.Newf(errs.Conflict,
			"directory %s is not empty, it contains %s; restore to a directory that is empty or does not exist",
			r.DataDir, used)
	}
	return nil
}

// clear removes the files of an earlier restore that did not finish.
func (r *restoration) clear() error {
	entries, err := os.ReadDir(r.DataDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !ignoredNames[e.Name()] && e.Name() != Folder {
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.DataDir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	// Removed last, because it marks the other files as those of a restore.
	return os.RemoveAll(filepath.Join(r.DataDir, Folder))
}

// extract restores the backup into a folder that servers ignore.
func (r *restoration) extract(ctx context.Context, into string) (*backup.Manifest, error) {
	m, err := backup.Extract(ctx, r.From, r.Stdin, into, r.Progress)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(r.restoreKeys(into, m), writeRestored(into)); err != nil {
		return nil, err
	}
	for i, c := range m.Clusters { // a backup of an ensemble is restored as a single server
		steps := &clusterSteps{
			r.Steps,
			fmt.Sprintf("cluster %s/%s (%d of %d): ", c.Organization, c.Name, i+1, len(m.Clusters)),
		}
		if err := migrate.Merge(ctx, filepath.Join(into, backup.ClustersDir, filepath.Base(c.UID)), steps); err != nil {
			return nil, fmt.Errorf("cluster %s/%s: %w", c.Organization, c.Name, err)
		}
	}
	if m.Etcd == backup.EtcdExternal {
		return m, nil // the operator restores the snapshot to the external etcd
	}
	snapshot := filepath.Join(into, backup.EtcdSnapshot)
	if err := etcd.Restore(snapshot, filepath.Join(into, "etcd")); err != nil {
		return nil, err
	}
	return m, os.Remove(snapshot)
}

// clusterSteps reports the steps of one cluster, with a prefix. to may be nil.
type clusterSteps struct {
	report backup.Steps
	prefix string
}

// Step implements migrate.Report.
func (c *clusterSteps) Step(text string) {
	if c.report != nil {
		c.report.Step(c.prefix + text)
	}
}

// Progress implements migrate.Report.
func (c *clusterSteps) Progress(done, total int64) {
	if c.report != nil {
		c.report.Progress(done, total)
	}
}

// restoreKeys writes the encryption keys, and checks that all keys of the backup are there.
func (r *restoration) restoreKeys(into string, m *backup.Manifest) error {
	file := filepath.Join(into, backup.EncryptionKeyFile)
	if r.EncryptionKey != "" {
		text, err := os.ReadFile(r.EncryptionKey)
		if err != nil {
			return errs.Newf(errs.NotFound, "reading the encryption keys: %w", err)
		}
		if err := privatefile.Write(file, text); err != nil {
			return err
		}
	} else if !m.HasKeys {
		return errs.Newf(errs.Invalid, "backup was taken without keys; pass the file with the encryption keys %v "+
			"with --encryption-key", m.EncryptionKeys)
	}
	sealer, err := identity.ReadSealer(file)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, id := range sealer.KeyIDs() {
		have[id] = true
	}
	for _, id := range m.EncryptionKeys {
		if !have[id] {
			return errs.Newf(errs.Invalid,
				"encryption key %s is missing in the key file; data that is encrypted with it would be lost", id)
		}
	}
	return nil
}

// publish moves the restored files into the data directory and syncs them to disk.
func (r *restoration) publish(from string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return atomicfile.SyncDir(path)
	})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(r.DataDir, e.Name())); err != nil {
			return fmt.Errorf("restoring %s: %w; run the command again", e.Name(), err)
		}
	}
	return errors.Join(atomicfile.SyncDir(r.DataDir), os.Remove(from), atomicfile.SyncDir(r.DataDir))
}
