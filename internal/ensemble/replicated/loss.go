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
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
)

// A copy that does not fit to its log is never opened (engine.ErrLogLost). An operator
// who has seen what that means can have the shard go on: from one of the copies, with
// a new log, or from the log, with new copies. What was decided is a key in etcd,
// which names the stores that may be given up by what exactly they have; the members
// act on it when they find that their copy is lost (accept.go).

// FromLog says that a shard goes on with what its log has.
const FromLog = "log"

// StoreState is a member's copy of a shard.
type StoreState struct {
	Member   string `json:"member"`
	Log      string `json:"log"`      // identity of the log that it is a copy of; "" when it is empty
	Position uint64 `json:"position"` // last message of the log that it has
	Epoch    uint64 `json:"epoch"`    // of that message
	Lost     bool   `json:"lost"`     // it does not fit to the log
	Problem  string `json:"problem,omitempty"`
	Mark     string `json:"mark"` // exactly what it has
}

// Loss is what would be lost if a shard whose log is lost went on.
type Loss struct {
	Owner string // "" when there is none; else only copies are given up
	From  string // a member, or FromLog
	Mark  string // of what it goes on from: it is carried out only as long as that is so

	LogThere             bool
	LogFirst, LogLast    uint64       // messages that the log has
	Copies               []StoreState // those that could be asked, by member
	Absent               []string     // members with a copy that could not
	LogMessages          uint64       // messages that only the log has, and that are given up
	Discard              []string     // members whose copies begin anew
	stream, known        string       // identities of the log that is there and the one that should be
	logRev, ownerCreated int64
}

var (
	errNothingLost = errs.New(errs.Precondition, "no copy of the shard is lost; there is nothing to accept")
	errNoCopy      = errs.New(errs.Precondition,
		"no member that has a copy could be asked; start one, or restore a backup")
	errNoBegin = errs.New(errs.Precondition, "the shard cannot go on from its log, which is gone or no longer "+
		"begins with the first message; choose a member's copy")
	errMoved = errs.New(errs.Conflict, "the shard is no longer as it was looked at; look at what would be lost again")
)

// state describes this member's copy.
func (s *Shard) state() (StoreState, error) {
	at, err := s.mark()
	if err != nil {
		return StoreState{}, err
	}
	s.mu.Lock()
	wrong := s.err
	s.mu.Unlock()
	out := StoreState{Member: s.o.Member, Position: at.position, Epoch: at.epoch, Mark: hex.EncodeToString(at.encode())}
	out.Lost, out.Problem = problemOf(wrong)
	if at.position > 0 {
		out.Log = at.log.String()
	}
	return out, nil
}

// stateOf asks a member for its copy.
func (s *Shard) stateOf(ctx context.Context, member string) (StoreState, error) {
	if member == s.o.Member {
		return s.state()
	}
	if s.o.Peer == nil {
		return StoreState{}, errors.New("other members cannot be reached")
	}
	via, base, err := s.o.Peer(member)
	if err != nil {
		return StoreState{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	f := &fetcher{client: &http.Client{Transport: via}}
	resp, err := f.get(ctx, strings.TrimSuffix(base, "/")+"/"+url.PathEscape(s.o.Cluster)+"/"+
		strconv.Itoa(s.o.Number)+"/state", 0)
	if err != nil {
		return StoreState{}, err
	}
	defer resp.Body.Close()
	var out StoreState
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&out); err != nil {
		return StoreState{}, fmt.Errorf("state of a copy: %w", err)
	}
	out.Member = member
	return out, nil
}

// Loss looks at the copies and the log of a shard that is lost, and says what going on
// would lose: from a member's copy, from the log, or, when from is "", from the copy
// that has most.
func (s *Shard) Loss(ctx context.Context, from string) (*Loss, error) {
	l := &Loss{Owner: s.Owner().Member, From: from}
	if err := l.lookAtLog(ctx, s); err != nil {
		return nil, err
	}
	s.mu.Lock()
	holders := slices.Clone(s.view.places)
	if l.Owner != "" {
		l.ownerCreated = s.view.rev
	}
	s.mu.Unlock()
	if holders == nil {
		holders = s.o.All
	}
	if holders == nil {
		holders = s.o.Members()
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

// lookAtLog asks the log and etcd for what there is.
func (l *Loss) lookAtLog(ctx context.Context, s *Shard) error {
	ctx, cancel := context.WithTimeout(ctx, 2*callPatience)
	defer cancel()
	known, err := s.o.Etcd.Get(ctx, s.keys.log)
	if err != nil {
		return errs.Newf(errs.Unavailable, "asking etcd for the identity of the log: %w", err)
	}
	for _, kv := range known.Kvs {
		l.known, l.logRev = string(kv.Value), kv.ModRevision
	}
	there, err := s.o.JetStream.Stream(ctx, streamName(&s.o))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return errs.Newf(errs.Unavailable, "looking at the log: %w", err)
	}
	info := there.CachedInfo()
	l.LogThere, l.stream = true, info.Config.Metadata[metaLog]
	l.LogFirst, l.LogLast = info.State.FirstSeq, info.State.LastSeq
	return nil
}

// decide chooses what the shard goes on from, and counts what is given up.
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
			"the shard is served by member %s; only the copies that are lost can begin anew, from %q", l.Owner, FromLog)
	case l.Owner != "":
		l.From = FromLog
	case l.From == "":
		l.From = slices.MaxFunc(l.Copies, func(a, b StoreState) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Position, b.Position))
		}).Member
	}
	if l.From == FromLog {
		if l.Owner == "" && (!l.LogThere || l.LogFirst > 1) {
			return errNoBegin
		}
		l.Mark = l.stream
		for _, c := range l.Copies {
			if c.Lost {
				l.Discard = append(l.Discard, c.Member)
			}
		}
		return nil
	}
	at := slices.IndexFunc(l.Copies, func(c StoreState) bool { return c.Member == l.From })
	if at < 0 {
		return errs.Newf(errs.NotFound, "member %q has no copy of the shard, or cannot be asked", l.From)
	}
	chosen := l.Copies[at]
	l.Mark = chosen.Mark
	for _, c := range l.Copies {
		if c.Mark != chosen.Mark {
			l.Discard = append(l.Discard, c.Member)
		}
	}
	if l.LogThere && l.LogLast > chosen.Position {
		l.LogMessages = l.LogLast - max(chosen.Position, l.LogFirst-1)
	}
	return nil
}

// acceptedValue is what was accepted.
type acceptedValue struct {
	From     string            `json:"from"`
	Mark     string            `json:"mark,omitempty"` // of the copy that it goes on from
	Log      string            `json:"log"`            // identity of the log from then on
	Replaces string            `json:"replaces,omitempty"`
	Discard  map[string]string `json:"discard"` // marks of stores that begin anew, by member
}

// Accept has the shard go on as was looked at, if it still is as it was then: mark is
// that of the look.
func (s *Shard) Accept(ctx context.Context, from, mark string) (*Loss, error) {
	l, err := s.Loss(ctx, from)
	if err != nil {
		return nil, err
	}
	if l.Mark != mark || l.From != from {
		return nil, errMoved
	}
	v := acceptedValue{From: l.From, Log: l.stream, Discard: map[string]string{}}
	for _, c := range l.Copies {
		if slices.Contains(l.Discard, c.Member) {
			v.Discard[c.Member] = c.Mark
		}
	}
	if l.From != FromLog {
		var id identity
		_, _ = rand.Read(id[:]) // never fails
		v.Mark, v.Log, v.Replaces = l.Mark, id.String(), l.known
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	then := []clientv3.Op{clientv3.OpPut(s.keys.accepted, string(text))}
	if l.From == FromLog && l.Owner == "" {
		then = append(then, clientv3.OpPut(s.keys.log, v.Log))
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	answer, err := s.o.Etcd.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", l.ownerCreated),
		clientv3.Compare(clientv3.ModRevision(s.keys.log), "=", l.logRev),
	).Then(then...).Commit()
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "writing down what is accepted: %w", err)
	}
	if !answer.Succeeded {
		return nil, errMoved
	}
	s.log.Warn("an operator has accepted a loss: the shard goes on", "from", l.From, "copies_given_up", l.Discard,
		"log_messages_given_up", l.LogMessages)
	return l, nil
}
