package replicated

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
)

// A copy that does not match its log is never opened (engine.ErrLogLost). An operator who
// has reviewed the consequences can make the shard continue: from one of the copies with a
// new log, or from the log with new copies. The decision is a key in etcd, which identifies
// the stores that may be discarded by their exact positions. Each member acts on the key
// when it finds that its copy does not match (accept.go).

// FromLog makes a shard continue from its log.
const FromLog = "log"

// StoreState describes a member's copy of a shard.
type StoreState struct {
	Member        string `json:"member"`
	Log           string `json:"log"`      // identity of the log that it is a copy of; "" when it is empty
	Position      uint64 `json:"position"` // last message of the log that it has
	Epoch         uint64 `json:"epoch"`    // of that message
	Lost          bool   `json:"lost"`     // it does not match the log
	Problem       string `json:"problem,omitempty"`
	ExactPosition string `json:"mark"`         // its exact position, encoded
	Mark          string `json:"acknowledged"` // the member's last acknowledged position, encoded
}

// Loss describes what would be lost if a shard whose log is lost continued.
type Loss struct {
	Owner string // "" when there is none; otherwise only copies are discarded
	From  string // a member, or FromLog
	Token string // identifies the state to continue from; Accept requires that it is unchanged

	LogExists            bool
	LogFirst, LogLast    uint64       // messages that the log has
	Copies               []StoreState // of the members that responded, by member
	Absent               []string     // members with a copy that did not respond
	LogMessages          uint64       // messages that only the log has and that would be discarded
	Discard              []string     // members whose copies would be replaced
	stream, storedLog    string       // identity of the existing log, and the one stored in etcd
	logRev, ownerCreated int64
}

var (
	errNothingLost = errs.New(errs.Precondition, "no copy of the shard is lost; there is nothing to accept")
	errNoCopy      = errs.New(errs.Precondition, "no member with a copy of the shard responded; start one of them")
	errNoLogStart  = errs.New(errs.Precondition, "log of the shard is gone or no longer has its first message, so the "+
		"shard cannot continue from it; choose a member's copy")
	errChanged = errs.New(errs.Conflict, "shard has changed since it was reviewed; review what would be lost again")
)

// state describes this member's copy.
func (s *Shard) state() (StoreState, error) {
	at, err := s.storePosition()
	if err != nil {
		return StoreState{}, err
	}
	s.mu.Lock()
	wrong := s.err
	s.mu.Unlock()
	out := StoreState{
		Member: s.o.Member, Position: at.seq, Epoch: at.epoch,
		ExactPosition: hex.EncodeToString(at.encode()), Mark: hex.EncodeToString(s.mark.position().encode()),
	}
	out.Lost, out.Problem = problemOf(wrong)
	if at.seq > 0 {
		out.Log = at.log.String()
	}
	return out, nil
}

// stateOf reads the state of a member's copy.
func (s *Shard) stateOf(ctx context.Context, member string) (StoreState, error) {
	if member == s.o.Member {
		return s.state()
	}
	via, base, err := s.peer(member)
	if err != nil {
		return StoreState{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	f := &fetcher{client: via}
	resp, err := f.get(ctx, base+"/state", 0)
	if err != nil {
		return StoreState{}, err
	}
	defer resp.Body.Close()
	var out StoreState
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&out); err != nil {
		return StoreState{}, fmt.Errorf("decoding the state of a copy: %w", err)
	}
	out.Member = member
	return out, nil
}

// Loss reads the state of the copies and the log of a shard, and returns what would be lost
// if it continued from a member's copy, from the log, or, when from is "", from the copy
// with the most data.
func (s *Shard) Loss(ctx context.Context, from string) (*Loss, error) {
	l := &Loss{Owner: s.Owner().Member, From: from}
	if err := l.readLog(ctx, s); err != nil {
		return nil, err
	}
	s.mu.Lock()
	holders := slices.Clone(s.view.holders)
	if l.Owner != "" {
		l.ownerCreated = s.view.ownerRev
	}
	s.mu.Unlock()
	if holders == nil {
		holders = s.o.All
	}
	if holders == nil {
		holders = s.o.Members.Live()
	}
	for _, name := range holders {
		if is, err := s.stateOf(ctx, name); err == nil {
			l.Copies = append(l.Copies, is)
		} else {
			l.Absent = append(l.Absent, name)
		}
	}
	return l, l.decide()
}

// readLog reads the state of the log and its identity in etcd.
func (l *Loss) readLog(ctx context.Context, s *Shard) error {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	known, err := s.o.Etcd.Get(ctx, s.keys.log)
	if err != nil {
		return errs.Newf(errs.Unavailable, "reading the identity of the log from etcd: %w", err)
	}
	for _, kv := range known.Kvs {
		l.storedLog, l.logRev = string(kv.Value), kv.ModRevision
	}
	there, err := findLog(ctx, &s.o, l.storedLog)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return errs.Newf(errs.Unavailable, "reading the state of the log: %w", err)
	}
	info := there.handle.CachedInfo()
	l.LogExists, l.stream = true, there.identity()
	l.LogFirst, l.LogLast = info.State.FirstSeq, info.State.LastSeq
	return nil
}

// decide chooses what the shard continues from, and what is discarded.
func (l *Loss) decide() error {
	if len(l.Copies) == 0 {
		return errNoCopy
	}
	if !slices.ContainsFunc(l.Copies, func(c StoreState) bool { return c.Lost }) {
		return errNothingLost
	}
	switch {
	case l.Owner != "" && l.From != "" && l.From != FromLog:
		return errs.Newf(errs.Precondition,
			"shard is served by member %q, so only lost copies can be replaced; use %q", l.Owner, FromLog)
	case l.Owner != "":
		l.From = FromLog
	case l.From == "":
		l.From = slices.MaxFunc(l.Copies, func(a, b StoreState) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Position, b.Position))
		}).Member
	}
	if l.From == FromLog {
		if l.Owner == "" && (!l.LogExists || l.LogFirst > 1) {
			return errNoLogStart
		}
		l.Token = l.stream
		for _, c := range l.Copies {
			if c.Lost {
				l.Discard = append(l.Discard, c.Member)
			}
		}
		return nil
	}
	at := slices.IndexFunc(l.Copies, func(c StoreState) bool { return c.Member == l.From })
	if at < 0 {
		return errs.Newf(errs.NotFound, "member %q has no copy of the shard, or does not respond", l.From)
	}
	chosen := l.Copies[at]
	l.Token = chosen.ExactPosition
	for _, c := range l.Copies {
		if c.ExactPosition != chosen.ExactPosition {
			l.Discard = append(l.Discard, c.Member)
		}
	}
	if l.LogExists && l.LogLast > chosen.Position {
		l.LogMessages = l.LogLast - max(chosen.Position, l.LogFirst-1)
	}
	return nil
}

// acceptedValue is the decision of an operator, or the one to rebuild the log from a copy that has
// everything, as stored in etcd.
type acceptedValue struct {
	From          string            `json:"from"`
	ExactPosition string            `json:"mark,omitempty"` // position of the copy to continue from
	Log           string            `json:"log"`            // identity of the log from then on
	Replaces      string            `json:"replaces,omitempty"`
	Discard       map[string]string `json:"discard"` // positions of the stores to discard, by member
	// Epoch is one that all later epochs of the log exceed. When the shard continues from its log,
	// marks up to this epoch do not count any more.
	Epoch   uint64 `json:"epoch,omitempty"`
	Rebuild bool   `json:"rebuild,omitempty"` // no operator has decided; nothing is discarded
}

// voidEpochs is the distance between the largest known epoch and the one that all epochs exceed
// after an operator has decided to continue from the log. A member that is absent may have seen
// larger epochs.
const voidEpochs = 1000

// Accept makes the shard continue as Loss described it. token is the one that Loss returned;
// Accept fails with a conflict if the shard has changed since.
func (s *Shard) Accept(ctx context.Context, from, token string) (*Loss, error) {
	l, err := s.Loss(ctx, from)
	if err != nil {
		return nil, err
	}
	if l.Token != token || l.From != from {
		return nil, errChanged
	}
	v := acceptedValue{From: l.From, Log: l.stream, Discard: map[string]string{}}
	for _, c := range l.Copies {
		if slices.Contains(l.Discard, c.Member) {
			v.Discard[c.Member] = c.ExactPosition
		}
	}
	if l.From != FromLog {
		var id logID
		_, _ = rand.Read(id[:]) // never fails
		v.ExactPosition, v.Log, v.Replaces = l.Token, id.String(), l.storedLog
	}
	marks, err := s.readMarks(ctx)
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "%w", err)
	}
	if l.From == FromLog {
		v.Epoch = l.epochAfter(marks, v.Log)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	then := []clientv3.Op{clientv3.OpPut(s.keys.accepted, string(text))}
	if l.From == FromLog && l.Owner == "" {
		then = append(then, clientv3.OpPut(s.keys.log, v.Log))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := s.o.Etcd.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", l.ownerCreated),
		clientv3.Compare(clientv3.ModRevision(s.keys.log), "=", l.logRev),
		clientv3.Compare(clientv3.ModRevision(s.keys.accepted), "=", marks.acceptedRev),
	).Then(then...).Commit()
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "storing the accepted loss: %w", err)
	}
	if !response.Succeeded {
		return nil, errChanged
	}
	s.log.Warn("operator has accepted a loss; the shard continues", slog.String("from", l.From),
		slog.Any("copies_given_up", l.Discard), slog.Uint64("log_messages_given_up", l.LogMessages))
	return l, nil
}

// epochAfter returns the epoch up to which marks do not count after the shard has continued from
// its log. With an owner the log has everything that counts, so an earlier decision stays.
func (l *Loss) epochAfter(marks *shardMarks, log string) uint64 {
	if l.Owner != "" {
		if marks.accepted.From == FromLog && marks.accepted.Log == log {
			return marks.accepted.Epoch
		}
		return 0
	}
	var epoch uint64
	for _, m := range marks.all {
		epoch = max(epoch, m.at.epoch)
	}
	for _, c := range l.Copies {
		epoch = max(epoch, c.Epoch)
	}
	return epoch + voidEpochs
}
