package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

// campaignStagger delays each candidate after the preferred owner, so that the preferred one normally
// acquires an unowned shard without contention.
const campaignStagger = 100 * time.Millisecond

// campaignTimeout bounds one attempt to acquire an unowned shard. etcd drops requests while it
// elects a leader, so an attempt without a timeout could hang.
const campaignTimeout = time.Second

// keys are the etcd keys of a shard.
type keys struct{ base, owner, log, seed, copies, marks, holders, accepted, step, sums string }

func (o *Options) keys() keys {
	base := strings.TrimSuffix(o.Prefix, "/") + "/" + o.Cluster + "/" + strconv.Itoa(o.Number) + "/"
	return keys{
		base: base, owner: base + "owner", log: base + "log", seed: base + "seed", copies: base + "copies/",
		marks: base + "marks/", holders: base + "places", accepted: base + "accepted",
		step: base + "compare", sums: base + "sums/",
	}
}

// ownerValue is the value of the owner key. Epoch is 0 until the owner serves.
type ownerValue struct {
	Member   string `json:"member"`
	Instance string `json:"instance"`
	Epoch    uint64 `json:"epoch"`
}

// replicaStatus is what a member publishes in etcd about its copy of the shard.
type replicaStatus struct {
	Applied   uint64 `json:"applied"`
	Flushed   uint64 `json:"flushed"`
	InSync    bool   `json:"follows,omitempty"` // the store matches the log and follows it
	LogLost   bool   `json:"lost,omitempty"`    // the store can never match the log again (engine.ErrLogLost)
	Problem   string `json:"problem,omitempty"` // why the store cannot follow the log
	Resigning bool   `json:"resigns,omitempty"` // the member is shutting down and does not want the ownership
	Had       uint64 `json:"had,omitempty"`     // last message that the copy had before its files were damaged
}

// shardView caches the shard's keys in etcd. Protected by Shard.mu.
type shardView struct {
	known        bool // the keys have been read
	owner        ownerValue
	ownerRev     int64     // create revision of the owner key; 0 when the shard has no owner
	unownedSince time.Time // since when the shard has no owner; meaningful while ownerRev is 0
	copies       map[string]replicaStatus

	holders    []string // the members that have a copy; nil for all
	holdersRev int64    // mod revision of that list; 0 when there is none
	accepted   int64    // mod revision of the last accepted loss

	step step                  // of the comparison of the copies
	sums map[string]contentSum // of the members, for that step or an earlier one
}

// serving returns the owner once it serves.
func (v *shardView) serving() engine.Owner {
	if v.ownerRev == 0 || v.owner.Epoch == 0 {
		return engine.Owner{}
	}
	return engine.Owner{Member: v.owner.Member, Epoch: v.owner.Epoch}
}

// watch keeps the view up to date until the shard is closed.
func (s *Shard) watch() {
	warnings := lograte.New(retryWarnings)
	for s.ctx.Err() == nil {
		err := s.watchOnce()
		if s.ctx.Err() == nil {
			s.log.LogAttrs(s.ctx, warnings.Level("watch"), "etcd watch of the shard failed; retrying",
				slog.Any("error", err))
			s.sleep(s.ctx)
		}
	}
}

func (s *Shard) watchOnce() error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	defer cancel()
	get, getCancel := context.WithTimeout(ctx, callTimeout)
	defer getCancel()
	all, err := s.o.Etcd.Get(get, s.keys.base, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.view.copies = make(map[string]replicaStatus)
	s.view.holders, s.view.holdersRev = nil, 0
	s.view.step, s.view.sums = step{}, make(map[string]contentSum)
	owned := false
	for _, kv := range all.Kvs {
		owned = owned || string(kv.Key) == s.keys.owner
		s.applyKeyLocked(kv)
	}
	if !owned {
		s.unownedLocked()
	}
	s.view.known = true
	s.changeLocked()
	s.mu.Unlock()
	for response := range s.o.Etcd.Watch(ctx, s.keys.base, clientv3.WithPrefix(),
		clientv3.WithRev(all.Header.Revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		for _, e := range response.Events {
			if e.Type == clientv3.EventTypeDelete {
				s.applyDeleteLocked(string(e.Kv.Key))
			} else {
				s.applyKeyLocked(e.Kv)
			}
		}
		s.changeLocked()
		s.mu.Unlock()
	}
	return errors.New("watch has ended")
}

func (s *Shard) applyKeyLocked(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	switch key {
	case s.keys.owner:
		s.view.owner, s.view.ownerRev = ownerValue{}, kv.CreateRevision
		_ = json.Unmarshal(kv.Value, &s.view.owner) // an undecodable value leaves no serving owner
		return
	case s.keys.holders:
		s.setHoldersLocked(kv.Value, kv.ModRevision)
		return
	case s.keys.accepted:
		s.view.accepted = kv.ModRevision
		return
	case s.keys.step:
		s.view.step = step{}
		_ = json.Unmarshal(kv.Value, &s.view.step) // an undecodable value is no step; the owner replaces it
		s.judgeLocked()
		return
	}
	if member, ok := strings.CutPrefix(key, s.keys.sums); ok {
		var sum contentSum
		if json.Unmarshal(kv.Value, &sum) == nil {
			s.view.sums[member] = sum
			s.judgeLocked()
		}
		return
	}
	if member, ok := strings.CutPrefix(key, s.keys.copies); ok {
		var c replicaStatus
		if json.Unmarshal(kv.Value, &c) == nil {
			s.view.copies[member] = c
		}
	}
}

func (s *Shard) applyDeleteLocked(key string) {
	if key == s.keys.owner {
		s.unownedLocked()
	} else if key == s.keys.holders {
		s.view.holders, s.view.holdersRev = nil, 0
	} else if key == s.keys.step {
		s.view.step = step{}
	} else if member, ok := strings.CutPrefix(key, s.keys.copies); ok {
		delete(s.view.copies, member)
	}
}

func (s *Shard) unownedLocked() {
	if s.view.ownerRev != 0 || s.view.unownedSince.IsZero() {
		s.view.unownedSince = time.Now()
	}
	s.view.owner, s.view.ownerRev = ownerValue{}, 0
}

// candidates returns the members that may own the shard, the preferred one first: those
// that are live, have a copy and are not shutting down.
func (s *Shard) candidates() []string {
	ranked := s.ranked()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(ranked, func(name string) bool { return s.view.copies[name].Resigning })
}

// preferred returns the member that should own the shard.
func (s *Shard) preferred() string {
	if all := s.candidates(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// rank returns the number of members that are preferred to this one.
func (s *Shard) rank() int {
	all := s.candidates()
	if at := slices.Index(all, s.o.Member); at >= 0 {
		return at
	}
	return len(all)
}

// claim is the owner key while this member has it.
type claim struct {
	rev     int64
	session *concurrency.Session
}

// campaign waits until the shard has no owner and the delay of this member's rank has
// passed, and acquires the owner key.
func (s *Shard) campaign(ctx context.Context) (*claim, error) {
	warnings := lograte.New(retryWarnings)
	for ctx.Err() == nil {
		s.mu.Lock()
		v, changed := s.view, s.changed
		idle := s.resigning || !v.known || !v.holds(s.o.Member) || time.Now().Before(s.campaignAfter)
		s.mu.Unlock()
		switch {
		case idle:
		case v.ownerRev != 0:
			if v.owner.Member == s.o.Member {
				// The key is left from an earlier process of this member, or from an acquisition
				// whose response was lost.
				if err := s.deleteOwner(ctx, v.ownerRev); err != nil {
					s.log.LogAttrs(ctx, warnings.Level("campaign"),
						"removing this member's old owner key failed; retrying",
						slog.Any("error", err))
				}
			}
		default:
			if s.holdsBack(v.unownedSince) {
				s.await(ctx, changed, campaignStagger)
				continue
			}
			if wait := time.Until(v.unownedSince.Add(time.Duration(s.rank()) * campaignStagger)); wait > 0 {
				s.await(ctx, changed, wait)
				continue
			}
			c, err := s.acquire(ctx, v.holdersRev)
			if c != nil || ctx.Err() != nil {
				return c, ctx.Err()
			}
			if err != nil {
				s.log.LogAttrs(ctx, warnings.Level("campaign"), "campaign for the shard failed; retrying",
					slog.Any("error", err))
			}
			s.await(ctx, changed, campaignStagger)
			continue
		}
		s.await(ctx, changed, time.Second)
	}
	return nil, ctx.Err()
}

// await waits for a change, at most d.
func (s *Shard) await(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	_ = retry.Wait(ctx, changed, d) // callers check the context
}

// sleep waits before a retry.
func (s *Shard) sleep(ctx context.Context) { s.await(ctx, nil, retryInterval) }

// acquire acquires the owner key if the shard has no owner and the list of members with a copy
// is still at the revision holdersRev. It returns nil when another member was faster. It
// waits for the response even when the context ends, because a forgotten key would keep all
// members from owning the shard.
func (s *Shard) acquire(ctx context.Context, holdersRev int64) (*claim, error) {
	session := s.o.Lease.Session()
	if session == nil {
		return nil, errors.New("member has no lease")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), campaignTimeout)
	defer cancel()
	response, err := s.o.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", 0),
			clientv3.Compare(clientv3.ModRevision(s.keys.holders), "=", holdersRev)).
		Then(clientv3.OpPut(s.keys.owner, s.ownerValue(0), clientv3.WithLease(session.Lease()))).Commit()
	if err != nil || !response.Succeeded {
		return nil, err
	}
	return &claim{rev: response.Header.Revision, session: session}, nil
}

func (s *Shard) ownerValue(epoch uint64) string {
	text, _ := json.Marshal(ownerValue{Member: s.o.Member, Instance: s.instance, Epoch: epoch})
	return string(text)
}

// announce publishes that this member serves the shard.
func (s *Shard) announce(ctx context.Context, c *claim, epoch uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	then, published := s.withMark(clientv3.OpPut(s.keys.owner, s.ownerValue(epoch),
		clientv3.WithLease(c.session.Lease())))
	response, err := s.o.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", c.rev)).
		Then(then...).Commit()
	if err != nil {
		return fmt.Errorf("publishing that this member owns the shard: %w", err)
	}
	if !response.Succeeded {
		return errNoClaim
	}
	published()
	return nil
}

var errNoClaim = errors.New("owner key in etcd no longer belongs to this member")

// release removes the owner key if this member still has it. When that fails, for example
// while etcd elects a leader, release retries in the background, because the key would keep
// other members from owning the shard as long as this member lives.
func (s *Shard) release(c *claim) {
	s.mu.Lock()
	resigns, published := s.resigning, s.published
	s.mu.Unlock()
	and, _ := s.withMark() // published again if this fails
	if resigns {
		and = append(and, s.resignOp(published))
	}
	if s.vacate(context.WithoutCancel(s.ctx), c.rev, and...) == nil {
		return
	}
	s.wg.Go(func() {
		warnings := lograte.New(retryWarnings)
		for s.ctx.Err() == nil {
			err := s.vacate(s.ctx, c.rev, and...)
			if err == nil {
				return
			}
			s.log.LogAttrs(s.ctx, warnings.Level("release"),
				"removing the owner key of a shard that this member gave up failed, "+
					"so no member can own the shard; retrying", slog.Any("error", err))
			select {
			case <-c.session.Done(): // etcd removes the key with the lease
				return
			case <-time.After(retryInterval):
			case <-s.ctx.Done():
			}
		}
	})
}

// resignOp returns the operation that publishes that this member is not a candidate. It
// is part of the transaction that removes the owner key: the member's lease is still valid,
// so the other candidates would otherwise wait for this member's turn.
func (s *Shard) resignOp(published replicaStatus) clientv3.Op {
	published.Resigning = true
	text, _ := json.Marshal(published)
	return clientv3.OpPut(s.keys.copies+s.o.Member, string(text))
}

// vacate removes the owner key with a create revision and updates the view before the watch
// does. After an error the outcome is unknown; the watch reports it.
func (s *Shard) vacate(ctx context.Context, rev int64, and ...clientv3.Op) error {
	if err := s.deleteOwner(ctx, rev, and...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view.ownerRev == rev {
		s.unownedLocked()
		s.changeLocked()
	}
	return nil
}

// deleteOwner removes the owner key if it has the create revision rev. A key that is gone or
// belongs to another member is not an error.
func (s *Shard) deleteOwner(ctx context.Context, rev int64, and ...clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.o.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", rev)).
		Then(append(and, clientv3.OpDelete(s.keys.owner))...).Commit()
	return err
}
