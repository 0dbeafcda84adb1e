package replicated

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// A copy with a damaged file is replaced as a whole. The order makes sure that nothing is dropped that no
// other copy has:
//
//  1. The engine and the store are closed, and the member gives up the ownership. It publishes that its
//     copy has nothing, so that no member fetches from it and the owner keeps the log.
//  2. The log must exist, be the shard's, and reach at least as far as the damaged copy did. Otherwise the
//     damaged copy may be the only one with acknowledged messages, and stays in its place, closed.
//  3. A checkpoint of another member is fetched next to the damaged store and verified; or the log still
//     has its first message. Otherwise the damaged copy stays in its place, closed, until another member
//     with a copy returns.
//  4. The damaged store is moved into quarantine, and the checkpoint takes its place.
//
// A crash between any two steps leaves the damaged store or none in its place. The next start finds the
// damage again, because a damaged store is never recorded as closed properly, or starts an empty copy.

// copyDamage is the damage of this member's copy.
type copyDamage struct {
	pebble.FileDamage
	had      uint64 // last message of the log that the copy is known to have had
	attempts int    // how often replacing the copy has failed
}

// errHealing is the state of a copy whose replacement has begun or is tried again.
var errHealing = errors.New("files of this copy are damaged, and the member fetches another member's copy")

// errNoGoodCopy: no copy that could replace a damaged one is known. It wraps engine.ErrCorrupt, because it
// does not resolve as long as the members with a good copy are absent.
var errNoGoodCopy = fmt.Errorf("%w: files of this copy are damaged, no live member has a good copy, and the log "+
	"no longer has its first message; the copy stays closed and is kept: start the other members with a copy",
	engine.ErrCorrupt)

// The backoff of attempts to replace a damaged copy doubles with each failure.
const (
	minHealInterval = time.Second
	maxHealInterval = time.Minute
)

// part is the name of the copy in the register of verified files.
func (s *Shard) part() string { return "shard " + s.o.Cluster + "/" + strconv.Itoa(s.o.Number) }

// whileIntact returns a context that ends when damage of the store is found.
func (s *Shard) whileIntact(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	damaged := s.store.Damaged()
	go func() {
		select {
		case <-damaged:
			cancel(errHealing)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// noticeDamage reports whether the copy is damaged: err is damage that was found while the store was
// opened, or the open store has found some. From then on heal replaces the copy.
func (s *Shard) noticeDamage(err error) bool {
	if s.damage != nil {
		return true
	}
	var found *pebble.FileDamage
	if s.store != nil {
		found = s.store.Damage()
	} else {
		errors.As(err, &found)
	}
	if found == nil {
		return false
	}
	s.damage = &copyDamage{FileDamage: *found, had: s.applied.Load()}
	s.closeDamaged()
	s.o.Integrity.Damaged(s.part(), found.File, found.Err)
	if s.o.Integrity == nil {
		s.log.Error("copy of the shard is damaged; this member fetches another one", slog.Any("error", found))
	}
	return true
}

// closeDamaged closes the store without a record of a clean close, and withdraws its checkpoints.
func (s *Shard) closeDamaged() {
	s.lockToClose()
	defer s.storeMu.Unlock()
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Debug("closing the damaged store failed", slog.Any("error", err))
		}
		s.store = nil
	}
	if err := s.checkpoints.sweep(s.disk, 0); err != nil {
		s.log.Debug("removing checkpoints of the damaged store failed", slog.Any("error", err))
	}
	s.mu.Lock()
	s.flushed = 0
	s.mu.Unlock()
	s.applied.Store(0)
	s.setVerified(false)
}

// lockToClose locks the store, which the caller closes. Readers that pause because of a damaged table stop that.
func (s *Shard) lockToClose() {
	s.storeMu.RLock()
	if s.store != nil {
		s.store.End()
	}
	s.storeMu.RUnlock()
	s.storeMu.Lock()
}

// heal replaces the copy if it is damaged. It returns nil when the copy can be used again.
func (s *Shard) heal(ctx context.Context) error {
	d := s.damage
	if d == nil {
		return nil
	}
	err := s.replaceDamaged(ctx, d)
	if err == nil {
		s.damage = nil
		s.healLines.Forget("heal")
		s.o.Integrity.Healed(s.part())
		return nil
	}
	d.attempts++
	return err
}

// damageError returns the error of a damaged copy for the status: why it is not replaced, or, before the
// first attempt, its damage.
func (s *Shard) damageError(err error) error {
	if s.damage.attempts == 0 {
		return fmt.Errorf("%w (%s)", errHealing, s.damage.Error())
	}
	return err
}

// awaitHeal logs why a damaged copy was not replaced, at most once a minute, and waits before the next
// attempt. The damage itself is one of these lines (noticeDamage), so the first call logs nothing.
func (s *Shard) awaitHeal(err error) {
	if ok, _ := s.healLines.Allow("heal"); ok && s.damage.attempts > 0 {
		s.log.Error("damaged copy of the shard cannot be replaced yet; retrying", slog.String("file", s.damage.File),
			slog.Any("error", err))
	}
	if n := s.damage.attempts; n > 0 {
		s.await(s.ctx, nil, min(minHealInterval<<min(n-1, 10), maxHealInterval))
	}
}

// replaceDamaged performs the steps at the top of this file.
func (s *Shard) replaceDamaged(ctx context.Context, d *copyDamage) error {
	if err := s.publishDamage(ctx, d); err != nil {
		return err
	}
	st, err := s.openLog(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errHealing, err)
	}
	state, err := st.state(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errHealing, err)
	}
	if state.LastSeq < d.had {
		return fmt.Errorf("%w: the damaged copy had the log up to message %d, but the log ends at %d; start "+
			"the other members, which may have the rest", engine.ErrCorrupt, d.had, state.LastSeq)
	}
	fetchErr := s.fetchMatching(ctx, st)
	if fetchErr == nil {
		return s.install(d, true)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	whole, err := s.logIsWhole(ctx, st)
	if err != nil {
		return fmt.Errorf("%w: %w", errHealing, err)
	}
	if !whole {
		return fmt.Errorf("%w (%s; %w)", errNoGoodCopy, d.Error(), fetchErr)
	}
	return s.install(d, false)
}

// fetchMatching fetches a verified checkpoint that the log continues.
func (s *Shard) fetchMatching(ctx context.Context, st *stream) error {
	for _, fresh := range []bool{false, true} {
		at, err := s.fetchAny(ctx, s.fetchDir(), fresh)
		if err != nil {
			return err
		}
		if err := st.matches(ctx, at); err == nil || fresh || !errors.Is(err, errBehind) {
			return err
		}
		// The member offered a checkpoint that it had made earlier for another member.
	}
	return nil
}

// logIsWhole reports whether a new copy can be made from the log alone. It looks twice, with a pause in
// which an owner notices that this copy needs all of the log, and ends a purge that it had begun.
func (s *Shard) logIsWhole(ctx context.Context, st *stream) (bool, error) {
	for again := range 2 {
		state, err := st.state(ctx)
		if err != nil || state.FirstSeq > 1 {
			return false, err
		}
		if again == 0 {
			s.await(ctx, nil, 2*upkeepInterval)
		}
	}
	return ctx.Err() == nil, ctx.Err()
}

// publishDamage publishes that this copy is damaged and has nothing. It learns from etcd how far the copy
// had got.
func (s *Shard) publishDamage(ctx context.Context, d *copyDamage) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := s.o.Etcd.Get(call, s.keys.copies+s.o.Member)
	if err != nil {
		return fmt.Errorf("%w: reading the status of this copy: %w", errHealing, err)
	}
	var before replicaStatus
	for _, kv := range found.Kvs {
		_ = json.Unmarshal(kv.Value, &before) // an undecodable value has no position
	}
	d.had = max(d.had, before.Applied, before.Had)
	is := replicaStatus{Had: d.had, Problem: cmp.Or(before.Problem, errHealing.Error())}
	if before == is {
		return nil
	}
	return s.publishStatus(ctx, is)
}

// install replaces the damaged store: with the fetched checkpoint, or with an empty store, which follows
// the log from its first message.
func (s *Shard) install(d *copyDamage, fetched bool) (err error) {
	s.storeMu.Lock()
	defer s.storeMu.Unlock()
	if err := s.o.Integrity.Quarantine(s.part(), s.o.Dir, &d.FileDamage); err != nil {
		return fmt.Errorf("%w: %w", errHealing, err)
	}
	// Without a register, the damaged store is still there.
	if err = s.disk.RemoveStore(s.o.Dir); err == nil && fetched {
		if err = s.markFetched(s.fetchDir()); err == nil {
			err = s.disk.Rename(s.fetchDir(), s.o.Dir)
		}
	} else if err == nil {
		err = s.disk.Remove(s.fetchDir())
	}
	if err == nil {
		err = s.openLocked()
	}
	if err != nil {
		return fmt.Errorf("%w: replacing the damaged store: %w", errHealing, err)
	}
	s.store.SetVerified() // the checkpoint was verified after it was fetched
	s.setVerified(true)
	return nil
}

// openLocked opens the store with storeMu held.
func (s *Shard) openLocked() error {
	store, err := pebble.OpenStore(s.o.Dir, s.o.Store)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	var at logPosition
	stored, err := store.LogPosition()
	if err == nil {
		at, err = decodeLogPosition(stored)
	}
	if err != nil {
		if found := store.Damage(); found != nil {
			err = found
		}
		return errors.Join(err, store.Close())
	}
	s.store = store
	s.setVerified(store.Verified())
	s.mu.Lock()
	s.flushed = at.seq // everything in a reopened store is durable
	s.mu.Unlock()
	return nil
}
