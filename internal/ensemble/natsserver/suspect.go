package natsserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/ensemble/natsserver/natsfiles"
)

const (
	// examineInterval is the least time between two examinations: each of them restarts the server.
	examineInterval = 5 * time.Minute
	// suspicionTime is how long a suspicion waits for the other servers to be current.
	suspicionTime  = 10 * time.Minute
	verifyInterval = 7 * 24 * time.Hour
	firstVerify    = 24 * time.Hour
)

// suspicion is a reason to verify the files of a running server.
type suspicion struct {
	reason string
	since  time.Time
}

// Suspect makes the server verify its files, because a record that it returned does not verify. It stops
// the server for that, and replaces damaged files. It returns at once. Nothing happens while another server
// is not current, because the streams would lose their majority, nor soon after the last examination.
func (s *Server) Suspect(reason string) {
	if s.opts.Unverified {
		return
	}
	select {
	case s.suspicions <- suspicion{reason: reason, since: time.Now()}:
	default: // one is waiting already
	}
}

// suspectFiles handles messages of nats-server about damaged files.
func (s *Server) suspectFiles(problem string) {
	s.opts.Integrity.Damaged(part, s.filesPath(), errors.New(problem))
	s.Suspect(problem)
}

// examine verifies the files because of a suspicion. The watch goroutine calls it.
func (s *Server) examine(ctx context.Context, found suspicion) {
	if s.isAlone() || s.opts.CheckOthers == nil || time.Since(found.since) > suspicionTime {
		return
	}
	if !s.examined.IsZero() && time.Since(s.examined) < examineInterval {
		s.log.Warnf("files of the replicated log were verified a short time ago and are not verified again: %s",
			found.reason)
		return
	}
	if err := s.checkOthers(ctx); err != nil {
		s.later(ctx, found)
		return
	}
	s.examined = time.Now()
	s.log.Warnf("verifying the files of the replicated log, which stops for that: %s", found.reason)
	s.handOver()
	s.stop()
	for ctx.Err() == nil {
		err := s.open(ctx)
		if err == nil {
			return
		}
		s.log.Errorf("restarting the replicated log of this member failed; retrying: %v", err)
		_ = retry.Sleep(ctx, othersInterval)
	}
}

// later returns a suspicion to the queue after a while.
func (s *Server) later(ctx context.Context, found suspicion) {
	s.watching.Go(func() {
		if retry.Sleep(ctx, othersInterval) != nil {
			return
		}
		select {
		case s.suspicions <- found:
		default:
		}
	})
}

// scrub verifies full blocks and snapshots of the running server again and again.
func (s *Server) scrub(ctx context.Context) {
	interval := s.opts.VerifyInterval
	if interval <= 0 {
		interval = verifyInterval
	}
	pause := rand.N(min(interval, firstVerify))
	for retry.Sleep(ctx, pause) == nil {
		pause = interval - interval/10 + rand.N(interval/5+1)
		report, err := natsfiles.Verify(ctx, s.filesPath(), natsfiles.Options{
			BytesPerSecond: scrubBytesPerSecond, Sealed: true,
		})
		switch {
		case err != nil:
			s.log.Warnf("verifying the files of the replicated log failed: %v", err)
		case len(report.Findings) > 0:
			f := report.Findings[0]
			s.opts.Integrity.Damaged(part, s.damagedFile(f.File), errors.New(f.Problem))
			s.Suspect(f.Error())
		case !s.rejoining.Load() && s.opts.Integrity.Part(part).Damaged.IsZero():
			s.opts.Integrity.Verified(part)
		}
	}
}
