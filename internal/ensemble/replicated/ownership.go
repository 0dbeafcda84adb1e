package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/storage/engine"
)

// turn is how much longer each member waits than the one before it, from the
// preferred owner on, before it campaigns for a shard that is free.
const turn = 100 * time.Millisecond

// takePatience is how long one try to take a free shard may last: etcd drops what it
// is asked while it elects a leader.
const takePatience = time.Second

// keys are those of a shard in etcd.
type keys struct{ base, owner, log, seed, copies, places, accepted string }

func (o *Options) keys() keys {
	base := strings.TrimSuffix(o.Prefix, "/") + "/" + o.Cluster + "/" + strconv.Itoa(o.Number) + "/"
	return keys{
		base: base, owner: base + "owner", log: base + "log", seed: base + "seed", copies: base + "copies/",
		places: base + "places", accepted: base + "accepted",
	}
}

// ownerValue is what the owner's key holds. Epoch is 0 until the owner serves.
type ownerValue struct {
	Member   string `json:"member"`
	Instance string `json:"instance"`
	Epoch    uint64 `json:"epoch"`
}

// copyValue is what a member says of its copy.
type copyValue struct {
	Applied uint64 `json:"applied"`
	Flushed uint64 `json:"flushed"`
	Follows bool   `json:"follows,omitempty"` // the store fits to the log
	Lost    bool   `json:"lost,omitempty"`    // it never will: engine.ErrLogLost
	Problem string `json:"problem,omitempty"` // why the store cannot follow the log
	Resigns bool   `json:"resigns,omitempty"` // the member ends and does not want the shard
}

// view is what etcd says of the shard. Guarded by Shard.mu.
type view struct {
	known  bool // it was read
	owner  ownerValue
	rev    int64     // at which the owner's key was created, 0 when there is none
	free   time.Time // since when there is none
	copies map[string]copyValue
	bytes  int64 // of the log, when this member last looked

	places    []string // the members that have a copy; nil for all
	placesRev int64    // at which that was written, 0 when it never was
	accepted  int64    // when a loss was accepted last
}

// serving is the owner, once it serves.
func (v *view) serving() engine.Owner {
	if v.rev == 0 || v.owner.Epoch == 0 {
		return engine.Owner{}
	}
	return engine.Owner{Member: v.owner.Member, Epoch: v.owner.Epoch}
}

// watch keeps the view up to date.
func (s *Shard) watch() {
	var blind grumble
	for s.ctx.Err() == nil {
		err := s.watchOnce()
		if s.ctx.Err() == nil {
			s.log.Log(s.ctx, blind.level(), "owner of the shard cannot be watched in etcd; it is tried again", "error",
				err)
			s.sleep(s.ctx)
		}
	}
}

func (s *Shard) watchOnce() error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	defer cancel()
	get, getCancel := context.WithTimeout(ctx, callPatience)
	defer getCancel()
	all, err := s.o.Etcd.Get(get, s.keys.base, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.view.copies = make(map[string]copyValue)
	s.view.places, s.view.placesRev = nil, 0
	owned := false
	for _, kv := range all.Kvs {
		owned = owned || string(kv.Key) == s.keys.owner
		s.seeLocked(kv)
	}
	if !owned {
		s.unownedLocked()
	}
	s.view.known = true
	s.changeLocked()
	s.mu.Unlock()
	for answer := range s.o.Etcd.Watch(ctx, s.keys.base, clientv3.WithPrefix(),
		clientv3.WithRev(all.Header.Revision+1)) {
		if err := answer.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		for _, e := range answer.Events {
			if e.Type == clientv3.EventTypeDelete {
				s.goneLocked(string(e.Kv.Key))
			} else {
				s.seeLocked(e.Kv)
			}
		}
		s.changeLocked()
		s.mu.Unlock()
	}
	return errors.New("watch has ended")
}

func (s *Shard) seeLocked(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	switch key {
	case s.keys.owner:
		s.view.owner, s.view.rev = ownerValue{}, kv.CreateRevision
		_ = json.Unmarshal(kv.Value, &s.view.owner) // who wrote anything else owns it in vain
		return
	case s.keys.places:
		s.seePlacesLocked(kv.Value, kv.ModRevision)
		return
	case s.keys.accepted:
		s.view.accepted = kv.ModRevision
		return
	}
	if member, ok := strings.CutPrefix(key, s.keys.copies); ok {
		var c copyValue
		if json.Unmarshal(kv.Value, &c) == nil {
			s.view.copies[member] = c
		}
	}
}

func (s *Shard) goneLocked(key string) {
	if key == s.keys.owner {
		s.unownedLocked()
	} else if key == s.keys.places {
		s.view.places, s.view.placesRev = nil, 0
	} else if member, ok := strings.CutPrefix(key, s.keys.copies); ok {
		delete(s.view.copies, member)
	}
}

func (s *Shard) unownedLocked() {
	if s.view.rev != 0 || s.view.free.IsZero() {
		s.view.free = time.Now()
	}
	s.view.owner, s.view.rev = ownerValue{}, 0
}

// candidates lists the members that may own the shard, the one that should first: those
// that are live, have a copy and do not end.
func (s *Shard) candidates() []string {
	ranked := s.ranked()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(ranked, func(name string) bool { return s.view.copies[name].Resigns })
}

// preferred is the member that should own the shard.
func (s *Shard) preferred() string {
	if all := s.candidates(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// rank is how many members are preferred to this one.
func (s *Shard) rank() int {
	all := s.candidates()
	if at := slices.Index(all, s.o.Member); at >= 0 {
		return at
	}
	return len(all)
}

// claim is the owner's key while this member has it.
type claim struct {
	rev     int64
	session *concurrency.Session
}

// campaign waits until the owner's key is free and this member's turn has come, and
// takes it.
func (s *Shard) campaign(ctx context.Context) (*claim, error) {
	var vain grumble
	for ctx.Err() == nil {
		s.mu.Lock()
		v, changed := s.view, s.changed
		idle := s.resigns || !v.known || !v.holds(s.o.Member) || time.Now().Before(s.yields)
		s.mu.Unlock()
		switch {
		case idle:
		case v.rev != 0:
			if v.owner.Member == s.o.Member {
				// Of this member before it was started anew, or taken by a call whose
				// answer was lost.
				if err := s.deleteOwner(ctx, v.rev); err != nil {
					s.log.Log(ctx, vain.level(), "owner's key of this member could not be removed; it is tried again",
						"error", err)
				}
			}
		default:
			if wait := time.Until(v.free.Add(time.Duration(s.rank()) * turn)); wait > 0 {
				s.await(ctx, changed, wait)
				continue
			}
			c, err := s.take(ctx, v.placesRev)
			if c != nil || ctx.Err() != nil {
				return c, ctx.Err()
			}
			if err != nil {
				s.log.Log(ctx, vain.level(), "campaign for the shard failed; it is tried again", "error", err)
			}
			s.await(ctx, changed, turn)
			continue
		}
		s.await(ctx, changed, time.Second)
	}
	return nil, ctx.Err()
}

// await waits for a change, or a while.
func (s *Shard) await(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sleep waits before something is tried again.
func (s *Shard) sleep(ctx context.Context) { s.await(ctx, nil, retryPause) }

// take takes the owner's key if it is free, and the members that have copies are those
// that this member knows of; nil when not. Its answer is waited for also when the context
// ends: a key that was taken and is forgotten keeps everybody from the shard.
func (s *Shard) take(ctx context.Context, places int64) (*claim, error) {
	session := s.o.Session()
	if session == nil {
		return nil, errors.New("member has no lease at the moment")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takePatience)
	defer cancel()
	answer, err := s.o.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", 0),
			clientv3.Compare(clientv3.ModRevision(s.keys.places), "=", places)).
		Then(clientv3.OpPut(s.keys.owner, s.ownerValue(0), clientv3.WithLease(session.Lease()))).Commit()
	if err != nil || !answer.Succeeded {
		return nil, err
	}
	return &claim{rev: answer.Header.Revision, session: session}, nil
}

func (s *Shard) ownerValue(epoch uint64) string {
	text, _ := json.Marshal(ownerValue{Member: s.o.Member, Instance: s.instance, Epoch: epoch})
	return string(text)
}

// announce says that this member serves the shard.
func (s *Shard) announce(ctx context.Context, c *claim, epoch uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	answer, err := s.o.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", c.rev)).
		Then(clientv3.OpPut(s.keys.owner, s.ownerValue(epoch), clientv3.WithLease(c.session.Lease()))).Commit()
	if err != nil {
		return fmt.Errorf("saying that this member owns the shard: %w", err)
	}
	if !answer.Succeeded {
		return errNoClaim
	}
	return nil
}

var errNoClaim = errors.New("owner's key in etcd is no longer this member's")

// release gives the key up, if this member still has it. One that cannot be removed now,
// as while etcd elects a leader, is removed as soon as it can be: it would keep everybody
// from the shard for as long as this member lives.
func (s *Shard) release(c *claim) {
	s.mu.Lock()
	resigns, said := s.resigns, s.said
	s.mu.Unlock()
	var and []clientv3.Op
	if resigns {
		and = append(and, s.resignation(said))
	}
	if s.vacate(context.WithoutCancel(s.ctx), c.rev, and...) == nil {
		return
	}
	s.wg.Go(func() {
		var vain grumble
		for s.ctx.Err() == nil {
			err := s.vacate(s.ctx, c.rev, and...)
			if err == nil {
				return
			}
			s.log.Log(s.ctx, vain.level(), "owner's key of a shard that this member gave up could not be removed, "+
				"and nobody can own it; it is tried again", "error", err)
			select {
			case <-c.session.Done(): // the key ends with it
				return
			case <-time.After(retryPause):
			case <-s.ctx.Done():
			}
		}
	})
}

// resignation says, in the same breath as the key of a member that ends is removed, that
// it does not count: its lease lives on, and the others would leave it its turn.
func (s *Shard) resignation(said copyValue) clientv3.Op {
	said.Resigns = true
	text, _ := json.Marshal(said)
	return clientv3.OpPut(s.keys.copies+s.o.Member, string(text))
}

// vacate removes the key of a revision, and knows it before the watch tells. Without an
// answer nothing is known: then the watch tells, if it is gone.
func (s *Shard) vacate(ctx context.Context, rev int64, and ...clientv3.Op) error {
	if err := s.deleteOwner(ctx, rev, and...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view.rev == rev {
		s.unownedLocked()
		s.changeLocked()
	}
	return nil
}

// deleteOwner removes the owner's key if it is of a revision. One that is another's by
// now, or gone, is no error.
func (s *Shard) deleteOwner(ctx context.Context, rev int64, and ...clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	_, err := s.o.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", rev)).
		Then(append(and, clientv3.OpDelete(s.keys.owner))...).Commit()
	return err
}
