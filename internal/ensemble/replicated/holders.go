package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Places are the members that have a copy of the shard. A key in etcd lists them; without
// the key every member has a copy. Only the owner changes the list, in a transaction that
// requires its owner key: it adds members first, and removes one when enough others have
// caught up. A member that is not in the list has no store and never campaigns. A member
// that is removed from the list removes its copy.

// holdersValue is the value of the key.
type holdersValue struct {
	Members []string `json:"members"`
}

// SetCopies sets the number of members that should have a copy; 0 means all.
func (s *Shard) SetCopies(n int) { s.copies.Store(int64(n)) }

// wantedCopies returns the number of members that should have a copy.
func (s *Shard) wantedCopies() int {
	n := int(s.copies.Load())
	if n <= 0 || n > len(s.o.All) {
		return len(s.o.All)
	}
	return n
}

// ring returns all members in the order of preference for a copy.
func (s *Shard) ring() []string {
	if len(s.o.All) == 0 {
		return nil
	}
	at := s.o.Number % len(s.o.All)
	return append(slices.Clone(s.o.All[at:]), s.o.All[:at]...)
}

// initHolders reads which members have a copy, and chooses them for a new shard.
func (s *Shard) initHolders(ctx context.Context) error {
	if len(s.o.All) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if want := s.wantedCopies(); want < len(s.o.All) {
		text, err := json.Marshal(holdersValue{s.ring()[:want]})
		if err != nil {
			return err
		}
		_, err = s.o.Etcd.Txn(ctx).If(
			clientv3.Compare(clientv3.CreateRevision(s.keys.holders), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(s.keys.log), "=", 0),
		).Then(clientv3.OpPut(s.keys.holders, string(text))).Commit()
		if err != nil {
			return fmt.Errorf("choosing the members with a copy: %w", err)
		}
	}
	return s.refreshHolders(ctx)
}

// refreshHolders reads from etcd which members have a copy.
func (s *Shard) refreshHolders(ctx context.Context) error {
	found, err := s.o.Etcd.Get(ctx, s.keys.holders)
	if err != nil {
		return fmt.Errorf("reading the members with a copy: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.holders, s.view.holdersRev = nil, 0
	for _, kv := range found.Kvs {
		s.setHoldersLocked(kv.Value, kv.ModRevision)
	}
	return nil
}

func (s *Shard) setHoldersLocked(value []byte, revision int64) {
	var v holdersValue
	if json.Unmarshal(value, &v) == nil && len(v.Members) > 0 {
		s.view.holders, s.view.holdersRev = v.Members, revision
	}
}

// holds reports whether this member should have a copy, and returns the channel that is
// closed at the next change.
func (s *Shard) holds() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.holds(s.o.Member), s.changed
}

// holds reports whether a member should have a copy.
func (v *shardView) holds(member string) bool {
	return v.holders == nil || slices.Contains(v.holders, member)
}

// holderCopies returns the copies of the members that should have one. A member that has
// published nothing yet has the zero value.
func (v *shardView) holderCopies() map[string]replicaStatus {
	if v.holders == nil {
		return v.copies
	}
	copies := make(map[string]replicaStatus, len(v.holders))
	for _, name := range v.holders {
		copies[name] = v.copies[name]
	}
	return copies
}

// ranked returns the live members that have a copy, the preferred owner first.
func (s *Shard) ranked() []string {
	live := s.o.Members.Live()
	s.mu.Lock()
	holders := s.view.holders
	s.mu.Unlock()
	all := s.o.All
	if len(all) == 0 {
		all = live
	}
	return ranking(s.o.Number, all, holders, live)
}

// ranking returns the members that are live and in holders, or all live ones when holders is
// nil, in the order in which they should own a shard. The relative order of two members
// does not depend on whether a third one is live. So when a member is lost, only its shards
// move, and they are distributed over several others.
func ranking(number int, all, holders, live []string) []string {
	if len(all) == 0 {
		return nil
	}
	at := number % len(all)
	ranked := append(slices.Clone(all[at:]), all[:at]...)
	if rest := ranked[1:]; len(rest) > 0 {
		next := number / len(all) % len(rest)
		copy(rest, append(slices.Clone(rest[next:]), rest[:next]...))
	}
	return slices.DeleteFunc(ranked, func(name string) bool {
		return holders != nil && !slices.Contains(holders, name) || !slices.Contains(live, name)
	})
}

// whileHeld returns a context that ends when this member should no longer have a copy.
func (s *Shard) whileHeld() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.wg.Go(func() {
		for {
			held, changed := s.holds()
			if !held {
				cancel()
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, cancel
}

// openStore opens the store of a member that had no copy.
func (s *Shard) openStore() error {
	s.storeMu.Lock()
	defer s.storeMu.Unlock()
	if s.store != nil {
		return nil
	}
	if err := s.openLocked(); err != nil {
		return err
	}
	s.log.Info("this member starts a copy of the shard")
	return nil
}

// dropCopy removes the copy of a member that should have none, after reading the list again.
func (s *Shard) dropCopy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.refreshHolders(ctx); err != nil {
		return err
	}
	if held, _ := s.holds(); held {
		return nil
	}
	s.lockToClose()
	defer s.storeMu.Unlock()
	var err error
	if s.store != nil {
		s.log.Info("this member removes its copy of the shard, because other members have it")
		err = s.store.Close()
		s.store = nil
	}
	err = errors.Join(err, s.checkpoints.sweep(s.disk, 0), s.disk.RemoveStore(s.o.Dir), s.disk.Remove(s.fetchDir()))
	s.mu.Lock()
	s.flushed = 0
	s.mu.Unlock()
	s.applied.Store(0)
	s.damage = nil
	s.o.Integrity.Forget(s.part())
	if _, gone := s.o.Etcd.Delete(ctx, s.keys.copies+s.o.Member); gone != nil {
		err = errors.Join(err, fmt.Errorf("publishing that this member has no copy: %w", gone))
	}
	return err
}

// holderChoice is the input for the decision which members have a copy.
type holderChoice struct {
	ring     []string        // all members, in the order of preference
	want     int             // how many should have a copy
	self     string          // the owner
	gone     map[string]bool // absent for so long that another member replaces them
	settled  map[string]bool // live for a while
	caughtUp map[string]bool // live, with a copy that has caught up
}

// next returns the members that should have a copy, given those that have one now: the
// first members of the ring that are not gone, and those that cannot be removed yet.
func (c *holderChoice) next(now []string) []string {
	var target []string
	for _, gone := range []bool{false, true} {
		for _, name := range c.ring {
			if c.gone[name] == gone && len(target) < c.want {
				target = append(target, name)
			}
		}
	}
	next := slices.Clone(now)
	for _, name := range target {
		if c.settled[name] && !slices.Contains(next, name) {
			next = append(next, name)
		}
	}
	for _, name := range slices.Backward(c.ring) {
		if name == c.self || slices.Contains(target, name) || !slices.Contains(next, name) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(next), func(n string) bool { return n == name })
		good := 0
		for _, n := range rest {
			if c.caughtUp[n] {
				good++
			}
		}
		if good >= c.want {
			next = rest
		}
	}
	slices.SortFunc(next, func(a, b string) int { return slices.Index(c.ring, a) - slices.Index(c.ring, b) })
	return next
}

// presence records since when members are live or absent, for the owner's decisions.
type presence struct {
	absentSince map[string]time.Time // since when members are not live
	liveSince   map[string]time.Time // since when members are live
}

// observe updates the records with the members that are live.
func (p *presence) observe(names, live []string) {
	if p.absentSince == nil {
		p.absentSince, p.liveSince = make(map[string]time.Time), make(map[string]time.Time)
	}
	now := time.Now()
	for _, name := range names {
		from, to := p.liveSince, p.absentSince
		if slices.Contains(live, name) {
			from, to = to, from
		}
		delete(from, name)
		if _, known := to[name]; !known {
			to[name] = now
		}
	}
}

// absentFor reports whether a member has been absent for the given time.
func (p *presence) absentFor(name string, after time.Duration) bool {
	since, away := p.absentSince[name]
	return away && time.Since(since) >= after
}

// adjustHolders adjusts the list of members with a copy to the wanted number. end is the end of the
// log at the last moment that all copies have had the time to report.
func (u *upkeeper) adjustHolders(ctx context.Context, live []string, copies map[string]replicaStatus,
	end uint64,
) error {
	s := u.s
	if len(s.o.All) == 0 {
		return nil
	}
	s.mu.Lock()
	now, rev := slices.Clone(s.view.holders), s.view.holdersRev
	claim, mine := s.view.ownerRev, s.view.owner.Instance == s.instance
	s.mu.Unlock()
	if now == nil {
		now = s.ring()
	}
	c := holderChoice{
		ring: s.ring(), want: s.wantedCopies(), self: s.o.Member, gone: map[string]bool{}, settled: map[string]bool{},
		caughtUp: map[string]bool{},
	}
	for _, name := range c.ring {
		since, here := u.presence.liveSince[name]
		c.gone[name] = u.presence.absentFor(name, s.o.GoneAfter)
		c.settled[name] = here && time.Since(since) >= s.o.Settle
		published, has := copies[name]
		c.caughtUp[name] = name == s.o.Member || has && slices.Contains(live, name) && published.InSync &&
			published.Applied+maxCaughtUpLag >= end
	}
	next := c.next(now)
	if !mine || slices.Equal(next, now) || rev == 0 && len(next) == len(s.o.All) {
		return nil
	}
	text, err := json.Marshal(holdersValue{next})
	if err != nil {
		return err
	}
	then := []clientv3.Op{clientv3.OpPut(s.keys.holders, string(text))}
	for _, name := range now {
		if !slices.Contains(next, name) {
			then = append(then, clientv3.OpDelete(s.keys.copies+name))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := s.o.Etcd.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", claim),
		clientv3.Compare(clientv3.ModRevision(s.keys.holders), "=", rev),
	).Then(then...).Commit()
	if err != nil {
		return fmt.Errorf("changing which members have a copy: %w", err)
	}
	if response.Succeeded {
		s.log.Info("members with a copy of the shard have changed", slog.Any("before", now), slog.Any("now", next),
			slog.Int("wanted", c.want))
	}
	return nil
}
