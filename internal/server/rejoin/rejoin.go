// Package rejoin replaces the etcd data of a member of an ensemble, when it is damaged or lost, with
// that of the other members. It stands beside package server, because it joins the member's files
// (ops/datadir, ensemble/integrity), its etcd (controlplane/etcd) and the calls to the other members
// (ensemble). docs/adr/0052-etcd-damage-and-rejoining.md has the reasons.
//
// The order of the steps, each of which can be repeated after a crash:
//
//	Prepare (`freshet ensemble rejoin`, the member is stopped)
//	  1. The other members confirm that they are a majority without this member. Nothing has changed
//	     before that.
//	  2. The damaged directory is moved into quarantine. A start now refuses, because the directory
//	     is missing and the ensemble has a member of this name.
//	  3. The marker file is written.
//	Start (the next start of the member)
//	  4. With the marker and without a log of etcd, another member removes this member from etcd and
//	     adds it again, with a new identity and no votes. Repeating this is safe, because a member
//	     without a log has not voted under the new identity.
//	  5. etcd joins with an empty directory and receives a snapshot.
//	  6. The marker is removed.
//
// Invariant: a member never runs etcd without its log under an identity under which it has run
// before. The package has no locks; it holds that of the data directory.
package rejoin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ops/datadir"
)

const (
	// Part is the name of etcd's data in the register of the member's files.
	Part = "etcd"
	// treeFile is the file of damage that is not visible in the files: values have no checksums.
	treeFile = "etcd/member/snap/db"
	// Advice is what the operator of a member does about damaged etcd data.
	Advice = "while the other members run, run on this machine: freshet ensemble rejoin --config FILE, with the " +
		"configuration of this member, and start it again; it then fetches the data from the other members"

	markerFile = "etcd.rejoin"
	// prepareTimeout bounds the wait for the others: a member that has just ended has its lease for
	// some more seconds.
	prepareTimeout = 15 * time.Second
	askInterval    = time.Second
	// askLogInterval is the interval at which a starting member logs that it waits for the others.
	askLogInterval = 10 * time.Second
)

// Options returns the options with which a member of the configuration is opened.
func Options(cfg *config.Config, log *slog.Logger) ensemble.Options {
	options := ensemble.Options{
		Self: cfg.Members.Self, BundleDir: cfg.BundleDir(), Log: log, IntegrityDir: cfg.Path("integrity"),
	}
	for _, m := range cfg.Members.List {
		options.Members = append(options.Members,
			bundle.Member{Name: m.Name, Internal: m.Internal, Etcd: m.Etcd, Log: m.Log})
	}
	return options
}

// Pending reports whether Prepare has prepared the member and it has not rejoined yet.
func Pending(cfg *config.Config) bool {
	_, err := os.Stat(cfg.Path(markerFile))
	return err == nil
}

// Prepare moves the damaged etcd data of a stopped member into quarantine and lets the next start
// rejoin. It returns the damage. It changes nothing if the data is intact, or if the other members
// are not a majority.
func Prepare(ctx context.Context, cfg *config.Config) (damage string, err error) {
	if !cfg.Members.Enabled() || cfg.Etcd.External() {
		return "", errs.New(errs.Precondition, "configuration is not that of a member of an ensemble that runs etcd; "+
			"pass the configuration of the member with --config")
	}
	held, err := datadir.Hold(cfg.DataDir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	m, err := ensemble.Open(Options(cfg, slog.New(slog.DiscardHandler)))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	cause := Damage(cfg, m)
	if cause == nil {
		if Pending(cfg) {
			return "", errs.New(errs.Precondition, "member is already prepared to rejoin; start it")
		}
		return "", errs.New(errs.Precondition, "etcd data of this member is intact; start the member")
	}
	if err := awaitOthers(ctx, m); err != nil {
		return "", fmt.Errorf("nothing was changed: %w", err)
	}
	if err := m.Integrity().Quarantine(Part, cfg.Path("etcd"), cause); err != nil {
		return "", err
	}
	if err := atomicfile.Replace(cfg.Path(markerFile), []byte(cause.Error()+"\n")); err != nil {
		return "", fmt.Errorf("preparing the member to rejoin: %w; repeat the command", err)
	}
	m.Integrity().Forget(Part)
	return cause.Error(), nil
}

// Damage returns what is wrong with the etcd data of a stopped member, nil if it is intact as far as
// can be determined. A member that is prepared to rejoin is not damaged.
func Damage(cfg *config.Config, m *ensemble.Member) error {
	dir := cfg.Path("etcd")
	if part := m.Integrity().Part(Part); !part.Damaged.IsZero() {
		return fmt.Errorf("%s: %s", dir, part.Problem)
	}
	if err := etcd.Intact(dir); err != nil {
		return fmt.Errorf("%w in %s", err, dir)
	}
	if !etcd.HasLog(dir) && !Pending(cfg) {
		return fmt.Errorf("%s has no data of etcd", dir)
	}
	return nil
}

// awaitOthers returns when another member would accept that this member rejoins.
func awaitOthers(ctx context.Context, m *ensemble.Member) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	for {
		err := m.AskRejoin(ctx, true)
		if err == nil || retry.Sleep(ctx, askInterval) != nil {
			return err
		}
	}
}

// Start starts the etcd of a member. If the member was prepared to rejoin, it first asks the others
// to add it again without data.
func Start(ctx context.Context, cfg *config.Config, m *ensemble.Member, g *etcd.Ensemble,
	opts etcd.Options,
) (*etcd.Member, error) {
	dir := cfg.Path("etcd")
	opts.Advice = Advice
	opts.ReportDamage = func(cause error) { m.Integrity().Damaged(Part, treeFile, cause) }
	rejoining := Pending(cfg)
	if part := m.Integrity().Part(Part); !part.Damaged.IsZero() && !rejoining {
		return nil, fmt.Errorf("%w: %s in %s; %s", etcd.ErrDamaged, part.Problem, dir, Advice)
	}
	if err := datadir.CheckResourceStore(cfg.DataDir); err != nil && !rejoining {
		return nil, fmt.Errorf("%w: %w; %s", etcd.ErrDamaged, err, Advice)
	}
	if rejoining && !etcd.HasLog(dir) {
		if err := askOthers(ctx, m, g.Reporter, opts.Log); err != nil {
			return nil, err
		}
		g.Existing = true
	}
	started, err := etcd.Join(ctx, dir, g, opts)
	if err != nil {
		recordDamage(m.Integrity(), err)
		return nil, err
	}
	if rejoining {
		return started, finish(cfg, m, opts.Log)
	}
	m.Integrity().Verified(Part)
	return started, nil
}

// recordDamage records the damage that err is about, unless the next start finds it again in the files.
func recordDamage(register *integrity.Register, err error) {
	var damage *etcd.Damage
	if errors.As(err, &damage) && !damage.InFiles {
		register.Damaged(Part, treeFile, damage.Cause)
	}
}

// askOthers returns when another member has removed this member from etcd and added it again.
func askOthers(ctx context.Context, m *ensemble.Member, report etcd.Reporter, log *slog.Logger) error {
	logTick := time.NewTicker(askLogInterval)
	defer logTick.Stop()
	for {
		err := m.AskRejoin(ctx, false)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report.ReportWaiting("it rejoins, which needs the other members: " + err.Error())
		select {
		case <-logTick.C:
			log.Warn("member waits to rejoin its ensemble; check that the other members run", slog.Any("error", err))
		case <-time.After(askInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// finish records that the member has rejoined.
func finish(cfg *config.Config, m *ensemble.Member, log *slog.Logger) error {
	if err := os.Remove(cfg.Path(markerFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording that the member has rejoined: %w", err)
	}
	if err := atomicfile.SyncDir(cfg.DataDir); err != nil {
		return fmt.Errorf("recording that the member has rejoined: %w", err)
	}
	m.Integrity().Healed(Part)
	log.Info("member has rejoined its ensemble with an empty etcd")
	return nil
}
