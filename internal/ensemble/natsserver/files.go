package natsserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
	"freshet/internal/ensemble/natsserver/natsfiles"
)

const (
	// part is the name of the JetStream directory in the register of verified files.
	part = "logs"
	// filesDir is nats-server's directory in Options.Dir.
	filesDir = "jetstream"
	// systemDir is the directory of the Raft groups in filesDir.
	systemDir = "$SYS/_js_"

	floorsFile    = "floors"
	manifestFile  = "stopped"
	rejoiningFile = "rejoining"

	// startBytesPerSecond bounds the reading before the start, scrubBytesPerSecond that in the background.
	startBytesPerSecond = 512 << 20
	scrubBytesPerSecond = 8 << 20
)

// stateDir is the directory of this package's own files. It is not in Dir, so that it survives the loss
// of all logs.
func (o *Options) stateDir() string { return filepath.Clean(o.Dir) + "-state" }

func (s *Server) filesPath() string              { return filepath.Join(s.dir, filesDir) }
func (s *Server) statePath(name string) string   { return filepath.Join(s.opts.stateDir(), name) }
func (s *Server) isAlone() bool                  { return s.opts.Listen == "" }
func (s *Server) damagedFile(file string) string { return filepath.Join(s.filesPath(), file) }

// open starts the server on files that verify.
func (s *Server) open(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	err := s.launch(ctx)
	if err == nil || s.isAlone() || s.opts.CheckOthers == nil || s.nats.Load() == nil {
		return err
	}
	select {
	case found := <-s.suspicions:
		if !found.refused {
			return err
		}
		s.stop() // nats-server does not accept a file that verifies
		if err := s.rejoin(ctx, &natsfiles.Finding{File: ".", Problem: found.reason}); err != nil {
			return err
		}
		return s.launch(ctx)
	default:
		return err
	}
}

// prepare verifies the files and returns when a server may be started on them. Damaged files are moved
// into quarantine, and the server then starts with an empty directory (rejoin.go).
func (s *Server) prepare(ctx context.Context) error {
	if s.dir == "" || s.opts.Unverified {
		return nil // without a directory, launch returns the error
	}
	if err := os.MkdirAll(s.opts.stateDir(), 0o700); err != nil {
		return fmt.Errorf("creating directory %s: %w", s.opts.stateDir(), err)
	}
	pending, err := s.readRejoining()
	if err != nil {
		return err
	}
	damage, err := s.verify(ctx)
	if err != nil {
		return fmt.Errorf("verifying the files in %s: %w", s.filesPath(), err)
	}
	switch {
	case damage == nil && (!pending || s.isAlone()):
		return s.removeState(manifestFile)
	case s.isAlone():
		s.log.Errorf("%s is damaged, and there is no other member to fetch it from; messages can be missing: %v",
			s.damagedFile(damage.File), damage)
		return s.removeState(manifestFile)
	}
	return s.rejoin(ctx, damage)
}

// verify reads all files, also after a stop in good order: a file may have been damaged before it. It
// returns the first damage that nats-server does not repair automatically, and reports the result.
func (s *Server) verify(ctx context.Context) (*natsfiles.Finding, error) {
	compared, err := natsfiles.CompareManifest(s.statePath(manifestFile), s.filesPath())
	if err != nil {
		return nil, err
	}
	report, badFloors, err := verifyFiles(ctx, s.opts.Dir, compared, startBytesPerSecond)
	if err != nil {
		return nil, err
	}
	if badFloors != nil {
		s.log.Warnf("record of the ends of the logs cannot be used: %v", badFloors)
	}
	damaged := report.Damaged()
	if len(damaged) > 0 {
		s.opts.Integrity.Damaged(part, s.damagedFile(damaged[0].File), errors.New(damaged[0].Problem))
		for _, f := range damaged {
			s.log.Warnf("file of the replicated log is damaged: %v", f)
		}
		return &damaged[0], nil
	}
	if err := s.dropIndexes(report.Findings); err != nil {
		return nil, err
	}
	if pending, err := s.readRejoining(); err != nil || pending {
		return nil, err // it stays damaged until it has caught up
	}
	s.opts.Integrity.Verified(part)
	return nil, nil
}

// verifyFiles reads all files of Options.Dir and compares them with the manifest, whose comparison is
// compared, and with the floors. badFloors is why there are no floors to compare with.
func verifyFiles(ctx context.Context, dir string, compared natsfiles.Comparison, bytesPerSecond int64,
) (report *natsfiles.Report, badFloors, err error) {
	o := Options{Dir: dir}
	floors, badFloors := natsfiles.ReadFloors(filepath.Join(o.stateDir(), floorsFile))
	report, err = natsfiles.Verify(ctx, filepath.Join(dir, filesDir), natsfiles.Options{
		BytesPerSecond: bytesPerSecond, Stopped: compared.Stopped,
	})
	if err != nil {
		return nil, nil, err
	}
	report.Findings = append(report.Findings, compared.Findings...)
	report.Findings = append(report.Findings, report.Below(floors, systemDir)...)
	return report, badFloors, nil
}

// Stopped is the state of the directory of a stopped server.
type Stopped struct {
	// Findings are the damaged files, relative to the directory.
	Findings []natsfiles.Finding
	// BadState is why the record of the ends of the logs cannot be used; nil if it can.
	BadState error
	// Rejoining is set if the server had begun to fetch its logs again from the others.
	Rejoining bool
	Files     int
	Bytes     int64
}

// VerifyStopped verifies the directory (Options.Dir) of a stopped server and changes nothing. It reads all
// files, whether or not they have changed since the server was stopped.
func VerifyStopped(ctx context.Context, dir string) (*Stopped, error) {
	o := Options{Dir: dir}
	manifest := filepath.Join(o.stateDir(), manifestFile)
	compared, err := natsfiles.CompareManifest(manifest, filepath.Join(dir, filesDir))
	if err != nil {
		return nil, err
	}
	report, badFloors, err := verifyFiles(ctx, dir, compared, 0)
	if err != nil {
		return nil, err
	}
	_, rejoining := os.Stat(filepath.Join(o.stateDir(), rejoiningFile))
	found := &Stopped{BadState: badFloors, Rejoining: rejoining == nil, Files: report.Files, Bytes: report.Bytes}
	seen := map[string]bool{} // a damaged file can differ from the manifest, too
	for _, f := range report.Findings {
		if f.File = filepath.Join(filesDir, f.File); !seen[f.File] {
			seen[f.File] = true
			found.Findings = append(found.Findings, f)
		}
	}
	return found, nil
}

// dropIndexes moves damaged indexes into quarantine. The server makes them again from the messages.
func (s *Server) dropIndexes(found []natsfiles.Finding) error {
	for _, f := range found {
		path := s.damagedFile(f.File)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.opts.Integrity.Damaged(part, path, errors.New(f.Problem))
		if err := s.quarantine(path, f); err != nil {
			return err
		}
		s.log.Warnf("index of the replicated log is damaged and is made again: %v", f)
		s.opts.Integrity.Healed(part)
	}
	return nil
}

// quarantine moves a path into quarantine. Without a register it removes the path.
func (s *Server) quarantine(path string, cause error) error {
	if s.opts.Integrity != nil {
		return s.opts.Integrity.Quarantine(part, path, cause)
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// removeState removes files of the state durably.
func (s *Server) removeState(names ...string) error {
	removed := false
	for _, name := range names {
		err := os.Remove(s.statePath(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	return atomicfile.SyncDir(s.opts.stateDir())
}

// recordStop records the files after the server has ended in good order, so that the next start notices
// what is missing.
func (s *Server) recordStop() {
	if !s.running || len(s.suspicions) > 0 {
		return
	}
	if err := natsfiles.WriteManifest(s.statePath(manifestFile), s.filesPath()); err != nil {
		s.log.Warnf("state of the stopped replicated log could not be recorded; the next start does not "+
			"notice a lost end: %v", err)
	}
}
