package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/server/rejoin"
	"freshet/internal/server/sharedfiles"
)

// shared verifies the secrets that a member has in common with the others.
func (c directoryCheck) shared() {
	files := sharedfiles.List(c.cfg)
	missing := 0 // of the certificate authority
	for _, f := range files {
		if _, err := os.Stat(f.Path); errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(f.Name, "tls/") {
			missing++
		}
	}
	for _, f := range files {
		if missing == 2 && !c.cfg.Members.Enabled() && strings.HasPrefix(f.Name, "tls/") {
			continue // without the configuration, the member may have another certificate
		}
		if err := f.Check(); err != nil {
			c.report.Damaged(f.Name, "members do not accept what the others have issued without it: "+err.Error(),
				c.remedies.shared)
		} else {
			c.report.Part(f.Name, "the same on all members")
		}
	}
	if c.cfg.EncryptionKey.File != "" {
		c.keys() // the operator's file, which is not listed
	}
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

// logs verifies this member's part of the message log and of the journals: the directory of the
// embedded NATS server.
func (c directoryCheck) logs(ctx context.Context) error {
	if !c.remedies.member {
		return nil
	}
	if c.cfg.NATS.External() {
		c.report.Part("log", "external")
		return nil
	}
	found, err := natsserver.VerifyStopped(ctx, c.cfg.Path("log"))
	if err != nil {
		return fmt.Errorf("checking the message log: %w", err)
	}
	for _, f := range found.Findings {
		remedy := logsRemedy
		if f.Derived {
			remedy = indexRemedy
		}
		c.report.Damaged(filepath.Join("log", f.File), f.Problem, remedy)
	}
	if found.BadState != nil {
		c.report.Damaged("log-state", found.BadState.Error(), stateRemedy)
	}
	switch {
	case len(found.Findings) > 0:
	case found.Rejoining:
		c.report.Part("log", fmt.Sprintf("%d files with %d bytes; the next start fetches the rest from the others",
			found.Files, found.Bytes))
	default:
		c.report.Part("log", fmt.Sprintf("%d files with %d bytes, every block and snapshot", found.Files, found.Bytes))
	}
	return nil
}

// register reports the damage that the member had found while it ran, which its files do not show, and
// what is in quarantine.
func (c directoryCheck) register() {
	dir := c.cfg.Path("integrity")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	parts, quarantined, err := integrity.Read(dir)
	if err != nil {
		c.report.Damaged("integrity", err.Error(), registerRemedy)
	}
	for i := range parts {
		p := &parts[i]
		if p.Damaged.IsZero() {
			continue
		}
		remedy := automatically
		if p.Name == rejoin.Part {
			remedy = c.remedies.etcd
		}
		c.report.Damaged("integrity: "+p.Name, fmt.Sprintf("the member has found damage of %s at %s: %s", p.File,
			p.Damaged.Format(time.RFC3339), p.Problem), remedy)
	}
	for _, q := range quarantined {
		c.report.Part(filepath.Join("integrity", "quarantine", filepath.Base(q.Dir)),
			fmt.Sprintf("%d bytes of damaged files of %s since %s, which are removed after a day", q.Bytes, q.Part,
				q.At.Format(time.RFC3339)))
	}
}
