package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/identity"
)

const deletedSuffix = ".deleted"

// check returns an error if the source or the target cannot be used.
func (m *migration) check() error {
	if err := m.checkSource(); err != nil {
		return err
	}
	return m.checkTarget()
}

func exists(elem ...string) bool {
	_, err := os.Lstat(filepath.Join(elem...))
	return err == nil
}

func (m *migration) checkSource() error {
	if info, err := os.Stat(m.From); err != nil || !info.IsDir() {
		return errs.Newf(errs.NotFound, "%s is not a data directory; pass that of the server to migrate", m.From)
	}
	for _, name := range []string{"members", "log", Folder, ResultFile} {
		if exists(m.From, name) {
			return errs.Newf(errs.Conflict, "%s is the data directory of a member of an ensemble, because it contains "+
				"%s; only a single server can be migrated", m.From, name)
		}
	}
	for _, name := range []string{".restoring", "restored.json"} {
		if exists(m.From, name) {
			return errs.Newf(errs.Precondition, "%s was restored from a backup and not started since; start and "+
				"stop the server once to finish the restore", m.From)
		}
	}
	if !exists(m.From, "etcd", "member") {
		return errs.Newf(errs.NotFound, "%s has no resource store (etcd): it is not the data directory of a server, "+
			"or its etcd is external (etcd.endpoints) and cannot be migrated", m.From)
	}
	return nil
}

func (m *migration) checkTarget() error {
	c := m.Config
	switch {
	case !c.Members.Enabled():
		return errs.New(errs.Invalid,
			"configuration has no members; pass the one that freshet ensemble join wrote with --config")
	case c.Etcd.External():
		return errs.New(errs.Invalid, "members use an external etcd (etcd.endpoints); a server can only be migrated "+
			"into an ensemble with embedded etcd")
	}
	var err error
	if m.joining, err = bundle.ReadJoinConfig(c.BundleDir()); err != nil {
		return err
	}
	if _, err := bundle.Open(c.BundleDir(), c.Members.Self); err != nil {
		return err
	}
	if !m.joining.Seed {
		return errs.Newf(errs.Precondition, "member %s was not created for the data of another server; create the "+
			"ensemble with freshet ensemble init --from %s, join with the bundle of its first member, and migrate "+
			"to that one", c.Members.Self, m.From)
	}
	for _, name := range []string{"admin.token", "tls/ca.crt"} {
		have, err := os.ReadFile(filepath.Join(m.From, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join(m.to, name))
		if err != nil || !bytes.Equal(bytes.TrimSpace(have), bytes.TrimSpace(want)) {
			return errs.Newf(errs.Precondition, "%s of the ensemble is not that of the server in %s, so the bundle is "+
				"of another ensemble; create it with freshet ensemble init --from %[2]s", name, m.From)
		}
	}
	return nil
}

// checkEmpty returns an error if the member has already run.
func (m *migration) checkEmpty() error {
	for _, name := range []string{"etcd", "clusters", "log"} {
		if exists(m.to, name) {
			return errs.Newf(errs.Conflict, "data directory %s is not empty, it contains %s; use an empty one with "+
				"only the bundle of the member", m.to, name)
		}
	}
	return nil
}

// checkKeys returns an error if the ensemble does not have the keys of the stored secrets.
func (m *migration) checkKeys(sealed map[string]bool) error {
	sealer, err := identity.ReadSealer(m.Config.EncryptionKeyFile())
	if err != nil {
		return err
	}
	for _, id := range sealer.KeyIDs() {
		delete(sealed, id)
	}
	for id := range sealed {
		return errs.Newf(errs.Precondition, "secrets are encrypted with the key %s, which the ensemble does not have, "+
			"so the bundle is of another ensemble; create it with freshet ensemble init --from %s", id, m.From)
	}
	return nil
}

// checkDiskSpace returns an error if the disk has too little free space.
func (m *migration) checkDiskSpace() error {
	stores, resources := sizeOf(filepath.Join(m.From, "clusters")), sizeOf(filepath.Join(m.From, "etcd"))
	need := stores + stores/10 + 4*resources + 64<<20 - sizeOf(m.path())
	var disk syscall.Statfs_t
	if err := syscall.Statfs(m.to, &disk); err != nil {
		return fmt.Errorf("reading the free space of the disk: %w", err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < need { //nolint:gosec // no disk is that large
		return errs.Newf(errs.Precondition, "disk of %s has %d MiB free, but the copy needs %d MiB; free space, or "+
			"choose another disk", m.to, free>>20, need>>20)
	}
	return nil
}
