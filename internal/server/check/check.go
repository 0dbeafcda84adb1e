// Package check verifies the data directory of a stopped server: keys, certificates, etcd, the
// audit log and every store (clusters.go), and on a member of an ensemble its bundle, its part of the
// message log, its copies of journals and its register of damage (member.go). It reports for each
// damaged part how it is replaced (remedies.go). It stands beside package server, because it reads the
// data of a whole system; how each part is verified is in the package that owns it. It locks the data
// directory (ops/datadir) and has no other locks.
package check

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"freshet/internal/base/cleanclose"
	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/internal/identity/atrest"
	"freshet/internal/ops/adminfiles"
	"freshet/internal/ops/datadir"
	"freshet/internal/server/rejoin"
)

// Report receives the results of Directory. It is an alias of an interface literal, so that
// package cli can implement it without importing this package.
type Report = interface {
	// Part reports a part of the data directory that is intact, and its contents.
	Part(name, contents string)
	// Damaged reports a problem of a part, its consequence, and how the part is replaced.
	Damaged(name, problem, remedy string)
	// Progress reports the progress of a store, the part that takes longest.
	Progress(name string, done, total int64)
}

// Directory verifies the data directory of a stopped server and reports the results. It changes
// nothing. The error is about the check itself.
func Directory(ctx context.Context, cfg *config.Config, report Report) error {
	if info, err := os.Stat(cfg.DataDir); err != nil || !info.IsDir() {
		return errs.Newf(errs.NotFound, "%s is not a data directory; pass that of the server", cfg.DataDir)
	}
	held, err := datadir.Hold(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { _ = held.Release() }() // nothing was written
	c := directoryCheck{cfg, report, remediesOf(cfg)}
	if _, err := datadir.CheckFormats(cfg.DataDir); err != nil {
		report.Damaged(datadir.FormatFile, err.Error(), c.remedies.format)
	} else {
		report.Part(datadir.FormatFile, "formats that this version reads")
	}
	c.secrets()
	c.admin()
	c.bundle()
	c.etcd()
	c.audit()
	if err := c.logs(ctx); err != nil {
		return err
	}
	if err := c.clusters(ctx); err != nil {
		return err
	}
	c.register()
	return nil
}

// directoryCheck is one call of Directory.
type directoryCheck struct {
	cfg      *config.Config
	report   Report
	remedies remedies
}

// secrets verifies the keys and the certificate authority, which the members of an ensemble share.
func (c directoryCheck) secrets() {
	if c.remedies.member {
		c.shared()
		return
	}
	c.keys()
	c.tls()
}

func (c directoryCheck) keys() {
	path := c.cfg.EncryptionKeyFile()
	sealer, err := identity.ReadSealer(path)
	if err != nil {
		c.report.Damaged(filepath.Base(path),
			"without its keys the server cannot decrypt the secrets in etcd and does not start: "+err.Error(),
			c.remedies.keys)
		return
	}
	c.report.Part(filepath.Base(path), fmt.Sprintf("%d keys", len(sealer.KeyIDs())))
}

func (c directoryCheck) tls() {
	cert, key := c.cfg.Path("tls", "ca.crt"), c.cfg.Path("tls", "ca.key")
	if _, err := os.Stat(cert); errors.Is(err, os.ErrNotExist) {
		return // the certificate is configured, or the next start creates the authority
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		c.report.Damaged("tls", "certificate authority cannot be read, so the server does not start; without the "+
			"files it creates another one, which clients do not trust: "+err.Error(), c.remedies.shared)
		return
	}
	c.report.Part("tls", "certificate authority")
}

// admin verifies the files of the administrator. Those of a member's token are in shared.
func (c directoryCheck) admin() {
	for name, what := range map[string]string{
		adminfiles.Credentials: "credentials of the administrator", atrest.RecordFile: "record of sealed secrets",
	} {
		if data, err := os.ReadFile(c.cfg.Path(name)); err == nil && !json.Valid(data) {
			c.report.Damaged(name, what+" cannot be read", "the next start writes the file again")
		}
	}
	data, err := os.ReadFile(c.cfg.Path(adminfiles.Token))
	if err == nil && strings.TrimSpace(string(data)) == "" && !c.remedies.member {
		c.report.Damaged(adminfiles.Token, "token of the administrator is empty, so the server does not start",
			c.remedies.token)
	}
}

func (c directoryCheck) etcd() {
	if c.cfg.Etcd.External() {
		c.report.Part("etcd", "external")
		return
	}
	dir := c.cfg.Path("etcd")
	if rejoin.Pending(c.cfg) && !etcd.HasLog(dir) {
		c.report.Part("etcd", "no data: the next start fetches it from the other members")
		return
	}
	if err := datadir.CheckResourceStore(c.cfg.DataDir); err != nil {
		c.report.Damaged("etcd", err.Error(), c.remedies.etcd)
		return
	}
	c.closed("etcd", closedRemedy)
	if err := errors.Join(etcd.Intact(dir), etcd.Check(dir)); err != nil {
		c.report.Damaged("etcd", "resources, accounts and keys cannot be read, so the server does not start: "+
			err.Error(), c.remedies.etcd)
		return
	}
	c.report.Part("etcd", "every page of the tree and every record of the log")
}

// closed verifies the record of the last orderly stop of a store.
func (c directoryCheck) closed(store, remedy string) {
	if err := cleanclose.CheckRecord(cleanclose.Dir(c.cfg.Path(store))); err != nil {
		c.report.Damaged(filepath.Join(store, cleanclose.Name), err.Error(), remedy)
	}
}

// audit reads the files of the audit log. The last line may be incomplete after a crash.
func (c directoryCheck) audit() {
	path := c.cfg.AuditPath()
	if path == "" {
		return
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		return
	}
	for _, file := range files {
		lines, bad, err := countLines(file)
		switch {
		case err != nil:
			c.report.Damaged(filepath.Base(file), "audit log cannot be read: "+err.Error(), auditRemedy)
		case bad > 0:
			c.report.Damaged(filepath.Base(file),
				fmt.Sprintf("%d of %d lines of the audit log are not audit records", bad, lines), auditRemedy)
		default:
			c.report.Part(filepath.Base(file), fmt.Sprintf("%d audit records", lines))
		}
	}
}

// countLines returns the number of lines of a file, and of those that are not JSON. It does
// not count an incomplete last line.
func countLines(path string) (lines, bad int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	in := bufio.NewReader(file)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines, bad, nil
		}
		if err != nil {
			return lines, bad, err
		}
		if lines++; !json.Valid(line) {
			bad++
		}
	}
}
