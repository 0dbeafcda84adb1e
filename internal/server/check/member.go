package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/server/rejoin"
)

// remedies describe for each part how it is replaced when it is damaged. A member of an ensemble gets
// most parts from the other members, a single server from a backup.
type remedies struct {
	member                                           bool
	format, keys, shared, token, bundle, etcd, store string
}

const (
	automatically = "replaced automatically at the next start, from the other members"
	fromBackup    = "restore it from a backup"
	// auditRemedy is the same everywhere: every server has its own trail.
	auditRemedy = "not replaced: no other server has these records; the server starts and appends to the log"
	removeFile  = "if no newer version has used the directory, remove the file; the next start writes it again"
)

// remediesOf returns the remedies for the data directory of a configuration.
func remediesOf(cfg *config.Config) remedies {
	name := bundle.InstalledMember(cfg.BundleDir())
	if name == "" && !cfg.Members.Enabled() {
		return remedies{
			format: removeFile, keys: fromBackup, shared: fromBackup,
			token: "remove the file, and the next start creates a new one",
			etcd:  "restore the data directory from a backup", store: "restore the folder of the cluster from a backup",
		}
	}
	r := remedies{
		member: true, format: removeFile, keys: automatically, shared: automatically, token: automatically,
		bundle: "run: freshet ensemble join BUNDLE --config FILE, with the bundle of this member, or a new one of: " +
			"freshet ensemble replace NAME --only-bundle",
		etcd: rejoin.Advice, store: automatically,
	}
	if cfg.EncryptionKey.File != "" {
		r.keys = "copy the file from another member"
	}
	return r
}

// bundle checks the certificate of a member and how it joins.
func (c directoryCheck) bundle() {
	if !c.remedies.member {
		return
	}
	dir := c.cfg.BundleDir()
	name := c.cfg.Members.Self
	if name == "" { // no configuration was passed
		name = bundle.InstalledMember(dir)
	}
	credentials, err := bundle.Open(dir, name)
	if err == nil {
		_, err = bundle.ReadJoinConfig(dir)
	}
	if err != nil {
		c.report.Damaged(filepath.Base(dir), "other members do not accept this member without it: "+err.Error(),
			c.remedies.bundle)
		return
	}
	c.report.Part(filepath.Base(dir), fmt.Sprintf("certificate of member %s until %s", name,
		credentials.Expiry().Format("2006-01-02")))
}

// logs reports this member's part of the message log and of the journals: the directory of the
// embedded NATS server. NATS verifies the checksums of its blocks when the member starts; this is
// the place to call a verification of the stopped directory.
func (c directoryCheck) logs() {
	dir := c.cfg.Path("log")
	if _, err := os.Stat(dir); !c.remedies.member || errors.Is(err, fs.ErrNotExist) {
		return
	}
	files, bytes := 0, int64(0)
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			files++
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		c.report.Damaged("log", "files of the message log cannot be read: "+err.Error(), automatically)
		return
	}
	c.report.Part("log", fmt.Sprintf("%d files with %d bytes, which the member verifies when it starts", files, bytes))
}
