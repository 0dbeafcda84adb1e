package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/server/migrate"
)

// MigrateReport hears what Migrate does and what it has moved. It has no name of its
// own, so that the command line can say it without knowing this package.
type MigrateReport = interface {
	// Step is what is being done now, Progress how many bytes of it are done.
	Step(text string)
	Progress(done, total int64)
	// Moved is a store, or the resources, after the copy was compared: counts is empty
	// where there is nothing to count.
	Moved(of, part string, topics int, messages uint64, subscriptions int, records uint64, sum string)
	// Done is the end; again says that it had been reached before.
	Done(member, dataDir string, again bool)
}

// Migrate brings the data directory of a server that has run alone into a new group: it
// makes the data directory of the group's first member, by the configuration of which
// the target is found. Both servers are stopped.
func Migrate(ctx context.Context, from string, cfg *config.Config, report MigrateReport) error {
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return errs.Newf(errs.NotFound, "%s is not a data directory; name the one of the server that moves", from)
	}
	if same(from, cfg.DataDir) {
		return errs.New(errs.Invalid, "the data directory of the member is the one of the server that moves; a "+
			"member begins with one of its own: name it with --to, and see that FRESHET_DATA_DIR does not name the other")
	}
	source, err := holdDir(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.release() }() // nothing was written
	if _, err := readFormats(from); err != nil {
		return err
	}
	if !cfg.Members.On() {
		return errs.New(errs.Invalid,
			"the configuration has no members: name the one that freshet cluster join has written, with --config")
	}
	if info, err := os.Stat(cfg.DataDir); err != nil || !info.IsDir() {
		return errs.Newf(errs.NotFound, "there is no data directory %s: unpack the bundle of the first member with "+
			"freshet cluster join, and then migrate", cfg.DataDir)
	}
	target, err := lockDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { _ = target.release() }() // what is there is on disk
	result, err := migrate.Run(ctx, migrate.Options{From: from, Config: cfg, Report: report})
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

// same says whether two names are of one directory.
func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// seedIsThere refuses to start the first member of a group that a server moves into
// before its data is there: it would begin with nothing, and so would the others.
func (s *server) seedIsThere(joining bundle.Joining) error {
	if !joining.Seed {
		return nil
	}
	_, err := os.Stat(s.cfg.Path("etcd", "member"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("member %s begins with the data of another server, which is not there yet: run freshet "+
			"migrate --from its data directory first", s.cfg.Members.Self)
	}
	return err
}
