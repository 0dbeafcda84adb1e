package replicated

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// The tables of a copy are verified when it was opened after anything but a clean stop, and then once in
// Options.VerifyInterval. Until the first verification has ended, the copy follows the log, but counts
// neither as a copy that has flushed something nor as one that is in sync, and its member does not
// campaign. So a verified copy on another member becomes the owner. When all members have crashed at once,
// the first one that has verified its copy becomes the owner. If that takes longer than
// unverifiedTimeout, a member owns the shard with an unverified copy rather than leave it closed: every
// block has a checksum, so reads of damaged ones fail, and the member hands over when one does. A copy
// that is known to be damaged never gets there.

const (
	// unverifiedTimeout is how long a shard has no owner before an unverified copy may own it.
	unverifiedTimeout = 10 * time.Second
	// verifyProgress is the interval of log lines about a verification.
	verifyProgress = 10 * time.Second
	// backgroundShare is the fraction (1/backgroundShare) of Options.VerifyBytes that the periodic
	// verification uses.
	backgroundShare = 16
	// verifyPoll is how often the verifier checks whether a verification is due.
	verifyPoll = time.Minute
)

// errReplaced means that the store was closed or replaced while it was verified.
var errReplaced = errors.New("store was replaced")

// setVerified sets whether the tables of the store are known to be intact.
func (s *Shard) setVerified(verified bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verified != verified {
		s.verified = verified
		s.changeLocked()
	}
}

// holdsBack reports whether this member leaves an unowned shard to others, because its copy is not
// verified.
func (s *Shard) holdsBack(unowned time.Time) bool {
	s.mu.Lock()
	verified := s.verified
	s.mu.Unlock()
	if verified {
		return false
	}
	return time.Since(unowned) < unverifiedTimeout || !s.o.Integrity.Part(s.part()).Damaged.IsZero()
}

// countedLocked returns the status of the copy as it counts for others: an unverified copy has nothing
// flushed and is not in sync.
func (s *Shard) countedLocked(is replicaStatus) replicaStatus {
	if !s.verified {
		is.Flushed, is.InSync = 0, false
	}
	return is
}

// verifyLoop verifies the store when it has to be, until the shard is closed.
func (s *Shard) verifyLoop() {
	lines := lograte.New(retryWarnings)
	last := time.Now() // without a register
	for s.ctx.Err() == nil {
		s.mu.Lock()
		verified, changed := s.verified, s.changed
		s.mu.Unlock()
		s.storeMu.RLock()
		store := s.store
		s.storeMu.RUnlock()
		if s.o.Integrity != nil {
			last = s.o.Integrity.Part(s.part()).Verified
		}
		rate := s.o.VerifyBytes
		if verified {
			rate = max(1, rate/backgroundShare)
		}
		if store == nil || store.Damage() != nil || verified && time.Since(last) < s.o.VerifyInterval {
			s.await(s.ctx, changed, max(retryInterval, min(verifyPoll, s.o.VerifyInterval-time.Since(last))))
			continue
		}
		err := s.verifyStore(s.ctx, store, rate)
		if err == nil {
			last = time.Now()
			continue
		}
		if s.ctx.Err() == nil && !errors.Is(err, errReplaced) && !errors.Is(err, engine.ErrCorrupt) {
			s.log.LogAttrs(s.ctx, lines.Level("verify"), "verifying the copy of the shard failed; retrying",
				slog.Any("error", err))
		}
		s.await(s.ctx, nil, retryInterval)
	}
}

// verifyStore verifies all tables of the store, limited to perSecond bytes per second. When one is damaged,
// the store reports it (pebble.Store.Damaged).
func (s *Shard) verifyStore(ctx context.Context, store *pebble.Store, perSecond int64) error {
	var tables []pebble.Table
	err := s.withStore(store, func() (err error) {
		if err = store.VerifyMetadata(); err == nil {
			tables, err = store.Tables()
		}
		return err
	})
	if err != nil {
		return err
	}
	p := pacer{perSecond: perSecond, begin: time.Now()}
	reported := p.begin
	for i, t := range tables {
		if err := s.withStore(store, func() error { return store.VerifyTable(ctx, t) }); err != nil {
			return err
		}
		if err := p.done(ctx, t.Size); err != nil {
			return err
		}
		if time.Since(reported) >= verifyProgress {
			reported = time.Now()
			s.log.Info("verifying the tables of the shard's copy", slog.Int("tables", i+1),
				slog.Int("of", len(tables)), slog.Int64("bytes", p.bytes))
		}
	}
	return s.withStore(store, func() error {
		if found := store.Damage(); found != nil {
			return found
		}
		store.SetVerified()
		s.setVerified(true)
		s.o.Integrity.Verified(s.part())
		return nil
	})
}

// withStore calls use while the store cannot be closed. It returns errReplaced when the shard no longer
// uses the store.
func (s *Shard) withStore(store *pebble.Store, use func() error) error {
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	if s.store != store {
		return errReplaced
	}
	return use()
}

// pacer limits a rate.
type pacer struct {
	perSecond int64
	begin     time.Time
	bytes     int64
}

// done counts bytes and waits while they are ahead of the rate.
func (p *pacer) done(ctx context.Context, bytes int64) error {
	p.bytes += bytes
	due := time.Duration(float64(p.bytes) / float64(p.perSecond) * float64(time.Second))
	if ahead := due - time.Since(p.begin); ahead > 10*time.Millisecond {
		return retry.Sleep(ctx, ahead)
	}
	return ctx.Err()
}
