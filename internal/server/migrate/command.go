package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ops/datadir"
)

// CommandReport receives the progress and the results of Server. It is an alias of an
// interface literal, so that package cli can implement it without importing this package.
type CommandReport = interface {
	// Step reports the current step, Progress how many of its bytes are done.
	Step(text string)
	Progress(done, total int64)
	// Moved reports a store, or the resources, after the copy was compared. Counts that do
	// not apply are 0.
	Moved(of, part string, topics int, messages uint64, subscriptions int, records uint64, sum string)
	// Done reports the end; again is true if an earlier call had already finished.
	Done(member, dataDir string, again bool)
}

// Server moves the data of a single server into a new ensemble: it creates the data directory
// of the ensemble's first member. cfg is the configuration of that member. Both servers must
// be stopped.
func Server(ctx context.Context, from string, cfg *config.Config, report CommandReport) error {
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return errs.Newf(errs.NotFound, "%s is not a data directory; pass that of the server to migrate", from)
	}
	if sameDirectory(from, cfg.DataDir) {
		return errs.New(errs.Invalid, "data directory of the member is that of the server to migrate; pass another "+
			"one with --to, and check that FRESHET_DATA_DIR is not set to the directory of the server")
	}
	source, err := datadir.Hold(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Release() }() // nothing was written
	if _, err := datadir.CheckFormats(from); err != nil {
		return err
	}
	if !cfg.Members.Enabled() {
		return errs.New(errs.Invalid,
			"configuration has no members; pass the one that freshet ensemble join wrote with --config")
	}
	if info, err := os.Stat(cfg.DataDir); err != nil || !info.IsDir() {
		return errs.Newf(errs.NotFound, "data directory %s does not exist; unpack the bundle of the first member with "+
			"freshet ensemble join, and then migrate", cfg.DataDir)
	}
	target, err := datadir.Acquire(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { _ = target.Release() }() // all files are synced
	result, err := Run(ctx, Options{From: from, Config: cfg, Report: report})
	if err != nil {
		return err
	}
	report.Moved("resources", "etcd", 0, 0, 0, uint64(result.Etcd.Keys), result.Etcd.Sum) //nolint:gosec // a count
	for _, c := range result.Clusters {
		for _, s := range c.Stores {
			part := s.Name
			if s.Topics == 0 && len(s.Journals) > 0 {
				part = strings.Join(s.Journals, ", ")
			}
			report.Moved(c.Name, part, s.Topics, s.Messages, s.Subscriptions, s.Records, s.Sum)
		}
	}
	report.Done(result.Member, result.DataDir, result.Again)
	return nil
}

// sameDirectory reports whether two paths are the same directory.
func sameDirectory(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// CheckSeed returns an error if the first member of an ensemble starts before the data of
// the migrated server is in its data directory. It would start an empty ensemble.
func CheckSeed(cfg *config.Config, joining bundle.JoinConfig) error {
	if !joining.Seed {
		return nil
	}
	_, err := os.Stat(cfg.Path("etcd", "member"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("member %s has to start with the data of another server, which is not migrated yet; run "+
			"freshet migrate --from the data directory of that server first", cfg.Members.Self)
	}
	return err
}

// CheckFinished returns an error if a migration into a data directory did not finish.
func CheckFinished(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, Folder)); err == nil {
		return fmt.Errorf("data directory %s is not complete, because a migration into it did not finish; run freshet "+
			"migrate again", dir)
	}
	return nil
}
