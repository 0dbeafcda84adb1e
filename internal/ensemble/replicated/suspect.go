package replicated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"freshet/internal/base/lograte"
	"freshet/internal/ensemble/replicas"
	"freshet/internal/storage/engine"
)

// A record of the log that does not verify, or is missing between others, is never applied. It does not
// mean that the log is lost either: usually the file of one replica is damaged. So the record is read at the
// other replicas (package replicas). When one of them has a record that verifies, that record counts, and
// the servers that do not have it are suspected: they verify and replace their files. Only when a majority
// of the replicas has no good record does the caller judge the leader's record, and return ErrLogLost.

// agreedFor is how long a majority without a good record is not read again. Each search moves the leader of
// the log, and a copy that does not match its log is tried every few seconds.
const agreedFor = 10 * time.Minute

// suspicions is what a shard has found out about the replicas of its log.
type suspicions struct {
	suspect func(server, reason string) // nil suspects nobody
	log     *slog.Logger
	lines   *lograte.Limiter

	mu     sync.Mutex
	agreed map[logPosition]time.Time // until when a majority counts as having no good record; protected by mu
}

func newSuspicions(o *Options) *suspicions {
	return &suspicions{
		suspect: o.Suspect, log: o.Logger.With(slog.Int("shard", o.Number)),
		lines:  lograte.New(lograte.Policy{Interval: time.Minute, Forget: time.Minute}),
		agreed: map[logPosition]time.Time{},
	}
}

// isAgreed reports whether a majority had no good record at a position a short time ago.
func (s *suspicions) isAgreed(at logPosition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.agreed[at])
}

func (s *suspicions) agree(at logPosition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for old, until := range s.agreed {
		if now.After(until) {
			delete(s.agreed, old)
		}
	}
	s.agreed[at] = now.Add(agreedFor)
}

// mayCheck reports whether a server may be made the leader to check its replica: at most once a minute.
func (s *suspicions) mayCheck(server string) bool {
	ok, _ := s.lines.Allow("check " + server)
	return ok
}

// report suspects the servers whose replicas do not have a record that another replica has.
func (s *suspicions) report(servers []string, stream string, seq uint64) {
	for _, server := range servers {
		if ok, _ := s.lines.Allow(server); ok {
			s.log.Warn("replica of the log has a record that does not verify, or lacks it; another replica has it, "+
				"and the server of the bad one verifies its files", slog.String("server", server),
				slog.Uint64("message", seq))
		}
		if s.suspect != nil {
			s.suspect(server, fmt.Sprintf("message %d of stream %s does not verify or is missing, and another replica "+
				"has it", seq, stream))
		}
	}
}

// confirm returns a message of the log. good reports whether it is the one that the caller expects. The
// caller has got another one, or none, from the server served, which can be "". confirm reads the message at
// the other replicas then. It returns a message that is not good, or errNoMessage, only if a majority of the
// replicas has no good one.
func (st *stream) confirm(ctx context.Context, seq uint64, served string, good func(record) bool) (record, error) {
	at := logPosition{log: st.id, seq: seq}
	var found record
	read := func(ctx context.Context) (bool, error) {
		state, err := st.state(ctx)
		switch {
		case err != nil:
			return false, err
		case seq < state.FirstSeq:
			return false, errBehind // purged
		case seq > state.LastSeq:
			return false, fmt.Errorf("leader of the log ends at message %d and has no message %d yet", state.LastSeq,
				seq)
		}
		found, err = st.read(ctx, nil, seq) // the zero record with an error
		if errors.Is(err, errNoMessage) || errors.Is(err, errForeign) {
			return false, nil
		}
		return err == nil && good(found), err
	}
	if st.suspicions.isAgreed(at) {
		return st.read(ctx, nil, seq)
	}
	bad, err := replicas.Search(ctx, st.js, st.name, read)
	switch {
	case err == nil:
		r := found
		if len(bad) == 0 && served != "" && st.suspicions.mayCheck(served) {
			same := func(ctx context.Context) (bool, error) {
				_, err := read(ctx)
				return err == nil && found.is(logPosition{sum: r.sum, epoch: r.epoch, index: r.index}) &&
					bytes.Equal(found.data, r.data), err
			}
			if ok, err := replicas.Check(ctx, st.js, st.name, served, same); err == nil && !ok {
				bad = []string{served}
			}
		}
		st.suspicions.report(bad, st.name, seq)
		return r, nil
	case errors.Is(err, replicas.ErrAgreed):
		st.suspicions.agree(at)
		return st.read(ctx, nil, seq)
	case errors.Is(err, errBehind), errors.Is(err, engine.ErrLogLost):
		return record{}, err
	}
	return record{}, fmt.Errorf("message %d of the log does not verify, or is missing, at this replica: %w", seq, err)
}

// readGood returns a message from the leader, or from another replica if the leader's is not good. Like
// confirm, it returns a message that is not good only if a majority has no good one.
func (st *stream) readGood(ctx context.Context, seq uint64, good func(record) bool) (record, error) {
	r, err := st.read(ctx, nil, seq)
	if err == nil && good(r) || err != nil && !errors.Is(err, errNoMessage) && !errors.Is(err, errForeign) {
		return r, err
	}
	r, err = st.confirm(ctx, seq, "", good)
	if errors.Is(err, errBehind) {
		err = errNoMessage
	}
	return r, err
}
