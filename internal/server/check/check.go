// Package check verifies the data directory of a stopped server: keys, certificates, etcd, the
// audit log and every store, and on a member of an ensemble its bundle and its part of the message
// log (member.go). It reports for each damaged part how it is replaced. It stands beside package
// server, because it reads the data of a whole system; how each part is verified is in the package
// that owns it. It locks the data directory (ops/datadir) and has no other locks.
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

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/internal/ops/datadir"
	"freshet/internal/storage/pebble"
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
	c.keys()
	c.tls()
	c.admin()
	c.bundle()
	c.etcd()
	c.audit()
	c.logs()
	return c.clusters(ctx)
}

// directoryCheck is one call of Directory.
type directoryCheck struct {
	cfg      *config.Config
	report   Report
	remedies remedies
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

func (c directoryCheck) admin() {
	if data, err := os.ReadFile(c.cfg.Path("admin.json")); err == nil && !json.Valid(data) {
		c.report.Damaged("admin.json",
			"credentials of the administrator cannot be read", "the next start writes the file again")
	}
	data, err := os.ReadFile(c.cfg.Path("admin.token"))
	switch {
	case err == nil && strings.TrimSpace(string(data)) == "":
		c.report.Damaged("admin.token", "token of the administrator is empty, so the server does not start",
			c.remedies.token)
	case errors.Is(err, os.ErrNotExist) && c.remedies.member:
		c.report.Damaged("admin.token", "token of the administrator is missing", c.remedies.token)
	}
}

func (c directoryCheck) etcd() {
	if c.cfg.Etcd.External() {
		c.report.Part("etcd", "external")
		return
	}
	if err := datadir.CheckResourceStore(c.cfg.DataDir); err != nil {
		c.report.Damaged("etcd", err.Error(), c.remedies.etcd)
		return
	}
	dir := c.cfg.Path("etcd")
	if err := errors.Join(etcd.Intact(dir), etcd.Check(dir)); err != nil {
		c.report.Damaged("etcd", "resources, accounts and keys cannot be read, so the server does not start: "+
			err.Error(), c.remedies.etcd)
		return
	}
	c.report.Part("etcd", "every page of the tree and every record of the log")
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
		shards, err := filepath.Glob(c.cfg.Path(name, "shard-[0-9][0-9][0-9]")) // of a member of an ensemble
		if err != nil {
			return err
		}
		for _, shard := range shards {
			if err := c.store(ctx, filepath.Join(name, filepath.Base(shard))); err != nil {
				return err
			}
		}
		if len(shards) > 0 {
			continue
		}
		if err := c.store(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c directoryCheck) store(ctx context.Context, name string) error {
	damaged := false
	done, err := pebble.Check(ctx, c.cfg.Path(name), func(file, problem string) {
		damaged = true
		c.report.Damaged(filepath.Join(name, file), problem, c.remedies.store)
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
