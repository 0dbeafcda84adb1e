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

// check refuses what cannot be moved, or not to there.
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
		return errs.Newf(errs.NotFound, "%s is not a data directory; name the one of the server that moves", m.From)
	}
	for _, name := range []string{"members", "log", Folder, ResultFile} {
		if exists(m.From, name) {
			return errs.Newf(errs.Conflict, "%s is the data directory of a member of a group already, it has %s; "+
				"only a server that runs alone can move into a group", m.From, name)
		}
	}
	for _, name := range []string{".restoring", "restored.json"} {
		if exists(m.From, name) {
			return errs.Newf(errs.Precondition, "%s was restored from a backup and not started since; start and "+
				"stop the server once, so that the restore is finished", m.From)
		}
	}
	if !exists(m.From, "etcd", "member") {
		return errs.Newf(errs.NotFound, "%s has no store of resources (etcd): it is not the data directory of a "+
			"server, or its etcd is elsewhere (etcd.endpoints), which cannot be moved", m.From)
	}
	return nil
}

func (m *migration) checkTarget() error {
	c := m.Config
	switch {
	case !c.Members.On():
		return errs.New(errs.Invalid,
			"the configuration has no members: name the one that freshet cluster join has written, with --config")
	case c.Etcd.External():
		return errs.New(errs.Invalid, "the members use an etcd elsewhere (etcd.endpoints); only a group with etcd "+
			"in its members can be moved into")
	}
	var err error
	if m.joining, err = bundle.ReadJoining(c.BundleDir()); err != nil {
		return err
	}
	if _, err := bundle.Open(c.BundleDir(), c.Members.Self); err != nil {
		return err
	}
	if !m.joining.Seed {
		return errs.Newf(errs.Precondition, "member %s does not begin with the data of another server: make the "+
			"group with freshet cluster init --from %s, join with the bundle of its first member, and migrate to that one", c.Members.Self, m.From)
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
			return errs.Newf(errs.Precondition, "%s of the group is not that of the server in %s: the bundle is of "+
				"another group; make it with freshet cluster init --from %[2]s", name, m.From)
		}
	}
	return nil
}

// checkEmpty refuses a member that has run.
func (m *migration) checkEmpty() error {
	for _, name := range []string{"etcd", "clusters", "log"} {
		if exists(m.to, name) {
			return errs.Newf(errs.Conflict, "%s is not empty, it has %s: a member begins with an empty data "+
				"directory, into which its bundle was unpacked", m.to, name)
		}
	}
	return nil
}

// checkKeys refuses a group that cannot read the secrets that are moved.
func (m *migration) checkKeys(sealed map[string]bool) error {
	sealer, err := identity.ReadSealer(m.Config.EncryptionKeyFile())
	if err != nil {
		return err
	}
	for _, id := range sealer.KeyIDs() {
		delete(sealed, id)
	}
	for id := range sealed {
		return errs.Newf(errs.Precondition, "secrets are encrypted with the key %s, which the group does not have: "+
			"the bundle is of another group; make it with freshet cluster init --from %s", id, m.From)
	}
	return nil
}

// checkRoom refuses a disk that is too small.
func (m *migration) checkRoom() error {
	stores, resources := sizeOf(filepath.Join(m.From, "clusters")), sizeOf(filepath.Join(m.From, "etcd"))
	need := stores + stores/10 + 4*resources + 64<<20 - sizeOf(m.path())
	var disk syscall.Statfs_t
	if err := syscall.Statfs(m.to, &disk); err != nil {
		return fmt.Errorf("asking for the free space: %w", err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < need { //nolint:gosec // no disk is that large
		return errs.Newf(errs.Precondition, "the disk of %s has %d MiB free, and the copy needs %d MiB: make room, "+
			"or choose another", m.to, free>>20, need>>20)
	}
	return nil
}
