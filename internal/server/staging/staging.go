// Package staging makes the consistent copy of all data of a running server that a backup is
// written from: the stores of clusters, etcd, the keys and other files. Package ops/backup
// defines the format of backups and schedules them, package restore reads them. It stands
// beside package server, because the copy contains the data of a whole system.
//
// # Locks
//
//	lock         protects
//	Stager.busy  the staged copy; held while the copy exists, also during network calls
package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/base/privatefile"
	"freshet/internal/base/retry"
	"freshet/internal/base/version"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/dataplane"
	"freshet/internal/identity"
	"freshet/internal/ops/backup"
)

// folder is the folder in the data directory for the staged copy of a backup. It is on
// the same file system as the stores, so that tables can be hard-linked.
const folder = "backup-staging"

var errBusy = errs.New(errs.Conflict, "another backup is being taken; try again when it is done")

// Plane contains the running clusters.
type Plane interface {
	Checkpoint(ctx context.Context, dir string, begin func(uid string, n, of int)) ([]string, error)
	Stored(uid string) bool
	Clusters() []*dataplane.Cluster
}

// Options are the data to copy.
type Options struct {
	Config   *config.Config
	Settings Settings // the copy contains them
	Plane    Plane
	Etcd     *clientv3.Client
}

// Settings are the configuration with the changes since the start.
type Settings interface {
	// YAML returns the current configuration as YAML, without secrets.
	YAML() ([]byte, error)
}

// Stager makes staged copies.
type Stager struct {
	Options
	busy sync.Mutex
}

// New returns a Stager.
func New(opts Options) *Stager { return &Stager{Options: opts} }

// Clean removes the copy of an earlier process.
func (s *Stager) Clean() error { return os.RemoveAll(s.Config.Path(folder)) }

// Stage creates a consistent copy of all data of a backup and returns its folder and a
// function to remove it. Only one copy exists at a time.
//
// It copies the clusters first and etcd last (docs/adr/0020-backups.md): so accounts, keys,
// bindings and revocations are never older than the messages, and a cluster in etcd either
// has its store in the copy or was created during the backup.
func (s *Stager) Stage(ctx context.Context, progress func(string)) (dir string, remove func() error, err error) {
	if !s.await(ctx) {
		return "", nil, errBusy
	}
	dir = s.Config.Path(folder, "copy")
	remove = func() error {
		defer s.busy.Unlock()
		return os.RemoveAll(s.Config.Path(folder))
	}
	m := &backup.Manifest{
		Version: 1, Created: time.Now().UTC(), Server: version.Get().Version,
		Etcd: backup.EtcdEmbedded,
	}
	if s.Config.Etcd.External() {
		m.Etcd = backup.EtcdExternal
	}
	if err := s.fill(ctx, dir, m, progress); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// stagingTimeout is the timeout for another copy to be removed: a client may start the next
// backup before the copy of its last one is removed.
const stagingTimeout = 2 * time.Second

const stagingPoll = 20 * time.Millisecond

func (s *Stager) await(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stagingTimeout)
	defer cancel()
	for !s.busy.TryLock() {
		if retry.Sleep(ctx, stagingPoll) != nil {
			return false
		}
	}
	return true
}

func (s *Stager) fill(ctx context.Context, dir string, m *backup.Manifest, progress func(string)) error {
	if err := errors.Join(os.RemoveAll(s.Config.Path(folder)),
		os.MkdirAll(filepath.Join(dir, backup.ClustersDir), 0o700)); err != nil {
		return fmt.Errorf("creating the folder of the staged copy: %w", err)
	}
	uids, err := s.Plane.Checkpoint(ctx, filepath.Join(dir, backup.ClustersDir), func(uid string, n, of int) {
		progress(fmt.Sprintf("copying the store of cluster %d of %d", n, of))
	})
	if err != nil {
		return err
	}
	progress("copying the resources")
	if m.EncryptionKeys, err = s.stageEtcd(ctx, dir); err != nil {
		return err
	}
	names := s.clusterNames()
	for _, uid := range uids {
		if !s.Plane.Stored(uid) { // deleted during the backup, so etcd does not contain it
			if err := os.RemoveAll(filepath.Join(dir, backup.ClustersDir, uid)); err != nil {
				return err
			}
			continue
		}
		cluster := names[uid]
		cluster.UID = uid
		m.Clusters = append(m.Clusters, cluster)
	}
	if err := errors.Join(s.stageFiles(dir), m.WriteTo(dir)); err != nil {
		return err
	}
	return makePrivate(dir)
}

func (s *Stager) clusterNames() map[string]backup.Cluster {
	names := map[string]backup.Cluster{}
	for _, c := range s.Plane.Clusters() {
		names[c.UID] = backup.Cluster{Organization: c.Organization, Name: c.Name}
	}
	return names
}

const stageAttempts = 5

// stageEtcd takes a snapshot of etcd and a copy of the encryption keys. The key file must be
// the same before and after the snapshot: an older file could lack a new key, and a newer one
// a retired key that the snapshot needs.
func (s *Stager) stageEtcd(ctx context.Context, dir string) (keys []string, err error) {
	snapshot, keyFile := filepath.Join(dir, backup.EtcdSnapshot), filepath.Join(dir, backup.EncryptionKeyFile)
	for range stageAttempts {
		before, err := os.ReadFile(s.Config.EncryptionKeyFile())
		if err != nil {
			return nil, fmt.Errorf("reading the encryption keys: %w", err)
		}
		if err := errors.Join(os.RemoveAll(snapshot), etcd.Snapshot(ctx, s.Etcd, snapshot)); err != nil {
			return nil, err
		}
		after, err := os.ReadFile(s.Config.EncryptionKeyFile())
		if err != nil {
			return nil, fmt.Errorf("reading the encryption keys: %w", err)
		}
		if !bytes.Equal(before, after) {
			continue
		}
		if err := privatefile.Write(keyFile, after); err != nil {
			return nil, err
		}
		sealer, err := identity.ReadSealer(keyFile)
		if err != nil {
			return nil, err
		}
		return sealer.KeyIDs(), nil
	}
	return nil, errs.Newf(errs.Unavailable, "encryption keys changed during %d snapshots; try again later",
		stageAttempts)
}

// stageFiles copies the other files of the data directory, and the configuration. It leaves
// out files that every start writes (admin.json, kubeconfig).
func (s *Stager) stageFiles(dir string) error {
	text, err := s.Settings.YAML()
	if err != nil {
		return err
	}
	if err := privatefile.Write(filepath.Join(dir, backup.ConfigurationFile), text); err != nil {
		return err
	}
	names := []string{backup.AdminTokenFile, backup.TLSDir + "/ca.crt", backup.TLSDir + "/ca.key"}
	if trail := s.Config.AuditPath(); trail != "" && filepath.Dir(trail) == filepath.Clean(s.Config.DataDir) {
		files, err := filepath.Glob(trail + "*") // with the rotated files
		if err != nil {
			return err
		}
		for _, file := range files {
			names = append(names, filepath.Base(file))
		}
	}
	for _, name := range names {
		if err := copySecret(s.Config.Path(name), filepath.Join(dir, name)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return nil
}

// copySecret copies a file up to its current size. The file may grow at the same time.
func copySecret(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, info.Size()))
	return errors.Join(err, out.Close())
}

// makePrivate removes the permissions of other users. The store creates tables with more
// permissions, because its folder is private. A backup may be written to another folder.
func makePrivate(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder has to be entered
		}
		return os.Chmod(path, 0o600)
	})
}
