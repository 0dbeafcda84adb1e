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
	// examineInterval is the least time between two examinations, unless the interval of verifications is
	// shorter: each of them restarts the server.
	examineInterval = 5 * time.Minute
	// suspicionTime is how long a suspicion waits for the other servers to be current, if no register records it.
	suspicionTime = 10 * time.Minute
	// repeatTime is how long an examination that found nothing is remembered. A record that does not verify
	// although its files do was stored like that, so the next suspicion replaces the files.
	repeatTime     = time.Hour
	verifyInterval = 7 * 24 * time.Hour
	// suspicionInterval is how often a waiting suspicion looks at the other servers.
	suspicionInterval = 2 * time.Second
	firstVerify       = 24 * time.Hour
)

// suspicion is a reason to verify the files of a running server.
type suspicion struct {
	reason  string
	since   time.Time
	refused bool // nats-server does not accept a file
	led     bool // the server still led its streams when it was suspected
}

// Suspect reports that the files may be damaged, because a reader got a record of this server that does not
// verify, or did not get one that another server has. The server stops, verifies its files, replaces damaged
// ones and runs again. Suspect returns at once. The server waits while another one is not current, because
// the streams would lose their majority, and examines its files at most once in examineInterval.
func (s *Server) Suspect(reason string) { s.suspect(suspicion{reason: reason}) }

// suspectFiles handles messages of nats-server about damaged files.
func (s *Server) suspectFiles(problem string) { s.suspect(suspicion{reason: problem, refused: true}) }

func (s *Server) suspect(found suspicion) {
	if s.opts.Unverified {
		return
	}
	if s.opts.Integrity.Part(part).Damaged.IsZero() {
		// It stays reported until the files are verified or replaced, also after a restart.
		s.opts.Integrity.Damaged(part, s.filesPath(), errors.New(found.reason))
	}
	found.since, found.led = time.Now(), true
	select {
	case s.suspicions <- found:
	default: // one is waiting already
	}
}

// examine verifies the files because of a suspicion. The watch goroutine calls it.
func (s *Server) examine(ctx context.Context, found suspicion) {
	if s.isAlone() || s.opts.CheckOthers == nil {
		return
	}
	if s.opts.Integrity.Part(part).Damaged.IsZero() && time.Since(found.since) > suspicionTime {
		return // the files were verified meanwhile, or nothing records that they were not
	}
	recently := !s.examined.IsZero() && time.Since(s.examined) < min(examineInterval, s.verifyInterval())
	if s.rejoining.Load() || recently || s.checkOthers(ctx) != nil {
		if found.led {
			// Another server may be waiting for a record that this one has damaged: another leader sends it.
			found.led = false
			s.handOver()
		}
		s.later(ctx, found)
		return
	}
	s.examined = time.Now()
	s.log.Warnf("verifying the files of the replicated log, which stops for that: %s", found.reason)
	s.handOver()
	s.stop()
	repeated := !s.foundIntact.IsZero() && time.Since(s.foundIntact) < repeatTime
	for ctx.Err() == nil {
		err := s.reopen(ctx, found, repeated)
		if err == nil {
			return
		}
		repeated = false // the files are in quarantine, or the next attempt verifies them
		s.log.Errorf("restarting the replicated log of this member failed; retrying: %v", err)
		_ = retry.Sleep(ctx, othersInterval)
	}
}

// reopen starts the stopped server on files that verify, or, with replace, on files that the other servers
// send it.
func (s *Server) reopen(ctx context.Context, found suspicion, replace bool) error {
	if !replace {
		err := s.open(ctx)
		if err == nil && !s.rejoining.Load() {
			s.foundIntact = time.Now()
		}
		return err
	}
	s.foundIntact = time.Time{}
	damage := natsfiles.Finding{File: ".", Problem: found.reason}
	s.opts.Integrity.Damaged(part, s.filesPath(), errors.New(found.reason))
	if err := s.rejoin(ctx, &damage); err != nil {
		return err
	}
	return s.launch(ctx)
}

// later returns a suspicion to the queue after a while.
func (s *Server) later(ctx context.Context, found suspicion) {
	s.watching.Go(func() {
		if retry.Sleep(ctx, suspicionInterval) != nil {
			return
		}
		select {
		case s.suspicions <- found:
		default:
		}
	})
}

// verifyInterval returns the time in which the running server reads all its files again.
func (s *Server) verifyInterval() time.Duration {
	if s.opts.VerifyInterval <= 0 {
		return verifyInterval
	}
	return s.opts.VerifyInterval
}

// scrub verifies full blocks and snapshots of the running server again and again.
func (s *Server) scrub(ctx context.Context) {
	interval := s.verifyInterval()
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
