package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/storage/engine"
)

// Members publish their marks (mark.go) in etcd. A member that takes over reads all of them
// before its epoch record, and so before it answers anything: if the log ends before one of
// them, or has another message in its place, the log has lost acknowledged writes
// (engine.ErrLogLost).
//
// The order in which a member takes over makes this exact:
//
//  1. It reads the log to its end E.
//  2. It reads the marks. Every mark that was published before is at most E, or the log is lost.
//  3. It appends its epoch record on the condition that the log ends at E. A write that was
//     acknowledged after 2 has made the log longer, so the append fails, and it begins again.
//
// What remains is a write that was acknowledged and whose mark is not published yet. The owner
// publishes its mark at most every second, standbys every three, and a starting member before
// its NATS server (PublishMarks). So the marks of a member that never returns are at most that
// old.

// publishedMark is a mark in etcd.
type publishedMark struct {
	Log   string    `json:"log"`
	Seq   uint64    `json:"message"`
	Epoch uint64    `json:"epoch"`
	Index uint64    `json:"index"`
	Sum   uint32    `json:"sum"`
	At    time.Time `json:"at"` // when it was published
}

func markValue(at logPosition) string {
	text, _ := json.Marshal(publishedMark{
		at.log.String(), at.seq, at.epoch, at.index, at.sum, time.Now().UTC().Truncate(time.Second),
	}) // no field can fail
	return string(text)
}

func parseMark(text []byte) (at logPosition, when time.Time, err error) {
	var v publishedMark
	if err := json.Unmarshal(text, &v); err != nil {
		return at, when, fmt.Errorf("decoding a published position: %w", err)
	}
	at = logPosition{seq: v.Seq, epoch: v.Epoch, index: v.Index, sum: v.Sum}
	at.log, err = parseLogID(v.Log)
	return at, v.At, err
}

// openMark opens the mark of this member's copy and publishes it. When etcd has a later mark, an
// earlier process of this member, perhaps with another disk, has acknowledged it: the mark stays.
func (s *Shard) openMark(ctx context.Context) error {
	m, err := openMark(s.o.Dir + MarkSuffix)
	if errors.Is(err, errDamagedMark) {
		// Only the marks of the other members, and the one in etcd, are left.
		s.log.Warn("position that this member has last acknowledged cannot be read; continuing with the published one",
			slog.Any("error", err))
	} else if err != nil {
		return err
	}
	s.mark = m
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	known, err := s.o.Etcd.Get(ctx, s.keys.marks+s.o.Member)
	if err != nil {
		return fmt.Errorf("reading the last acknowledged position from etcd: %w", err)
	}
	for _, kv := range known.Kvs {
		at, _, err := parseMark(kv.Value)
		if err != nil {
			return err
		}
		s.publishedMark = at
		if here := m.position(); at.log == here.log || here.seq == 0 {
			m.advance(at)
		}
	}
	if s.store != nil {
		at, err := s.storePosition()
		if err != nil {
			return err
		}
		s.noteStore(at)
	}
	ops, published := s.withMark()
	if len(ops) == 0 {
		return nil
	}
	if _, err := s.o.Etcd.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("publishing the last acknowledged position: %w", err)
	}
	published()
	return nil
}

// noteStore advances the mark to the position of a store, which was opened or fetched. The mark
// is ahead of the store when the process was killed, and behind it when the file was lost or the
// store was fetched.
func (s *Shard) noteStore(at logPosition) {
	if known := s.mark.position(); at.seq > 0 && (at.index > 0 || known.seq == 0 || known.log != at.log) {
		s.mark.advance(at)
	}
}

// withMark appends the operation that publishes the mark, if it has changed. The caller calls
// published when the operations have succeeded.
func (s *Shard) withMark(ops ...clientv3.Op) (all []clientv3.Op, published func()) {
	at := s.mark.position()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.seq == 0 || at == s.publishedMark {
		return ops, func() {}
	}
	return append(ops, clientv3.OpPut(s.keys.marks+s.o.Member, markValue(at))), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.publishedMark.log == at.log && s.publishedMark.after(at) {
			at = logPosition{} // another goroutine was faster, and etcd may have the older mark: publish again
		}
		s.publishedMark = at
	}
}

// markChanged reports whether the mark differs from the published one.
func (s *Shard) markChanged() bool {
	at := s.mark.position()
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.seq > 0 && at != s.publishedMark
}

// memberMark is the mark of a member.
type memberMark struct {
	member string
	at     logPosition
	when   time.Time
}

// shardMarks are the marks of all members, and what else in etcd decides about them.
type shardMarks struct {
	all         []memberMark // by member
	log         string       // identity of the shard's log
	logRev      int64        // mod revision of that key
	accepted    acceptedValue
	acceptedRev int64 // mod revision of that key
}

// readMarks reads the published marks from etcd (linearizably), and this member's own.
func (s *Shard) readMarks(ctx context.Context) (*shardMarks, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := s.o.Etcd.Txn(ctx).Then(clientv3.OpGet(s.keys.marks, clientv3.WithPrefix()),
		clientv3.OpGet(s.keys.log), clientv3.OpGet(s.keys.accepted)).Commit()
	if err != nil {
		return nil, fmt.Errorf("reading the acknowledged positions: %w", err)
	}
	out := &shardMarks{}
	byMember := map[string]memberMark{s.o.Member: {member: s.o.Member, at: s.mark.position()}}
	for _, kv := range found.Responses[0].GetResponseRange().Kvs {
		m := memberMark{member: strings.TrimPrefix(string(kv.Key), s.keys.marks)}
		if m.at, m.when, err = parseMark(kv.Value); err != nil {
			return nil, fmt.Errorf("member %q: %w", m.member, err)
		}
		if m.member != s.o.Member { // its own mark is newer than the published one
			byMember[m.member] = m
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byMember)) {
		out.all = append(out.all, byMember[name])
	}
	for _, kv := range found.Responses[1].GetResponseRange().Kvs {
		out.log, out.logRev = string(kv.Value), kv.ModRevision
	}
	for _, kv := range found.Responses[2].GetResponseRange().Kvs {
		out.acceptedRev = kv.ModRevision
		if err := json.Unmarshal(kv.Value, &out.accepted); err != nil {
			return nil, fmt.Errorf("decoding the accepted loss: %w", err)
		}
	}
	return out, nil
}

// voidUntil returns the epoch up to which marks of a log do not count, because an operator has
// accepted that the log is all there is. Later epochs are larger.
func (m *shardMarks) voidUntil(id logID) uint64 {
	if m.accepted.From == FromLog && m.accepted.Log == id.String() {
		return m.accepted.Epoch
	}
	return 0
}

// of returns the marks of a log that count.
func (m *shardMarks) of(id logID) []memberMark {
	void := m.voidUntil(id)
	return slices.DeleteFunc(slices.Clone(m.all), func(of memberMark) bool {
		return of.at.seq == 0 || of.at.log != id || void > 0 && of.at.epoch <= void
	})
}

// checkEnd returns nil when the log, which the follower has read to its end, has everything that
// members have acknowledged, else ErrLogLost. It queries a log that seems to have lost messages
// again for logLostTimeout, unless it did so before, because its leader may have just started. It
// returns the epoch that the next owner's must exceed.
func (s *Shard) checkEnd(ctx context.Context, f *follower) (epoch uint64, err error) {
	deadline := time.Now().Add(logLostTimeout)
	for {
		marks, err := s.readMarks(ctx)
		if err == nil {
			epoch, err = marks.voidUntil(f.st.id), s.compareMarks(ctx, f, marks.of(f.st.id))
		}
		if !errors.Is(err, engine.ErrLogLost) || ctx.Err() != nil {
			return epoch, err
		}
		if s.mismatched || time.Now().After(deadline) {
			if without := s.logHasMajority(ctx, f.st); without != nil {
				return 0, without
			}
			return 0, err
		}
		s.sleep(ctx)
		if err := f.catchUp(ctx); err != nil {
			return 0, err
		}
	}
}

// checkStandby returns nil when the log has everything that members have acknowledged. It reads the marks
// before it reads the log to its end, because an owner may append all the time: everything that the marks
// name is in the log by then.
func (s *Shard) checkStandby(ctx context.Context, f *follower) error {
	marks, err := s.readMarks(ctx)
	if err != nil {
		return err
	}
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	known := marks.of(f.st.id)
	err = s.compareMarks(ctx, f, known)
	if errors.Is(err, engine.ErrLogLost) && ctx.Err() == nil {
		if without := s.logHasMajority(ctx, f.st); without != nil {
			return without
		}
	}
	return err
}

// compareMarks compares marks with the log, which the follower has read to its end.
func (s *Shard) compareMarks(ctx context.Context, f *follower, marks []memberMark) error {
	if end := f.end.Load(); end < f.seq {
		return fmt.Errorf("%w: store has the log up to message %d, but the log ends at %d", engine.ErrLogLost, f.seq,
			end)
	}
	for _, m := range marks {
		if m.at.seq > f.seq {
			return s.endBefore(marks, f.seq)
		}
	}
	checked := map[logPosition]bool{f.at: true}
	for _, m := range marks {
		if checked[m.at] {
			continue
		}
		checked[m.at] = true
		r, err := f.st.readGood(ctx, m.at.seq, func(r record) bool { return r.is(m.at) })
		if errors.Is(err, errNoMessage) {
			var state jetstream.StreamState
			if state, err = f.st.state(ctx); err == nil && m.at.seq >= state.FirstSeq {
				err = lostEnd("log has no message %d any more, which member %q has acknowledged", m.at.seq, m.member)
			}
			if err == nil {
				continue // purged: all copies have flushed it
			}
		}
		if err != nil {
			return err
		}
		if !r.is(m.at) {
			return lostEnd("message %d of the log, of epoch %d, is not the one that member %q has acknowledged, "+
				"of epoch %d", m.at.seq, r.epoch, m.member, m.at.epoch)
		}
	}
	return nil
}

// is reports whether the record is the one at a position.
func (r *record) is(at logPosition) bool {
	return r.sum == at.sum && r.epoch == at.epoch && r.index == at.index
}

// errEndLost is an ErrLogLost of a copy that matches its log: what the log lacks was acknowledged by
// others.
var errEndLost = errors.New("log lacks acknowledged messages")

type endLostError struct{ text string }

func lostEnd(format string, args ...any) error { return &endLostError{fmt.Sprintf(format, args...)} }

func (e *endLostError) Error() string { return engine.ErrLogLost.Error() + ": " + e.text }

func (e *endLostError) Unwrap() []error { return []error{engine.ErrLogLost, errEndLost} }

// endBefore describes a log that ends before marks.
func (s *Shard) endBefore(marks []memberMark, end uint64) error {
	last := slices.MaxFunc(marks, func(a, b memberMark) int {
		if a.at.after(b.at) {
			return 1
		}
		return -1
	})
	when := ""
	if !last.when.IsZero() {
		when = " by " + last.when.Format(time.RFC3339)
	}
	remedy := "the log is rebuilt as soon as a live copy has them"
	if !slices.Contains(s.o.Members.Live(), last.member) {
		remedy = fmt.Sprintf("start member %q, whose copy may have them", last.member)
	}
	return lostEnd("member %q has acknowledged the log up to message %d%s, but the log ends at %d: "+
		"%d messages are missing; %s, or accept the loss", last.member, last.at.seq, when, end, last.at.seq-end, remedy)
}

// errNoMajority means that the answer of the log's leader may be outdated.
var errNoMajority = errors.New("leader of the log has no contact with a majority of its replicas")

// maxSilence is how long a replica of the log may be silent to count as in contact with the leader.
const maxSilence = 5 * time.Second

// logHasMajority returns nil when the log's leader is in contact with a majority. A leader that
// was replaced without noticing does not know the end of the log.
func (s *Shard) logHasMajority(ctx context.Context, st *stream) error {
	found, err := st.find(ctx)
	if err != nil {
		return err
	}
	cluster := found.CachedInfo().Cluster
	if cluster == nil || len(cluster.Replicas) == 0 {
		return nil // a single server
	}
	here := 1
	for _, r := range cluster.Replicas {
		if r.Current || !r.Offline && r.Active < maxSilence {
			here++
		}
	}
	if 2*here <= len(cluster.Replicas)+1 {
		return errNoMajority
	}
	return nil
}

// maxMarkOps is the number of marks that PublishMarks publishes in one transaction; etcd accepts 128.
const maxMarkOps = 100

// MarkFile is the file with the mark of a member's copy.
type MarkFile struct {
	Cluster string
	Number  int
	Dir     string // of the store
}

// PublishMarks publishes the marks of a member that starts, for other members that take over
// before it has opened its shards. It is called before the member's NATS server starts: while
// that is away, a log that needs its vote has no leader. Marks that are not later than the
// published ones, and files that do not exist or are damaged, change nothing.
func PublishMarks(ctx context.Context, etcd *clientv3.Client, prefix, member string, files []MarkFile) error {
	for batch := range slices.Chunk(files, maxMarkOps) {
		var reads, writes []clientv3.Op
		var local []logPosition
		for _, file := range batch {
			if m, err := openMark(file.Dir + MarkSuffix); err == nil && m.at.seq > 0 {
				o := Options{Prefix: prefix, Cluster: file.Cluster, Number: file.Number}
				reads = append(reads, clientv3.OpGet(o.keys().marks+member))
				local = append(local, m.at)
			} else if err != nil && !errors.Is(err, errDamagedMark) {
				return err
			}
		}
		if len(reads) == 0 {
			continue
		}
		known, err := etcd.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return fmt.Errorf("reading the published positions of this member: %w", err)
		}
		for i, at := range local {
			kvs := known.Responses[i].GetResponseRange().Kvs
			if len(kvs) == 0 {
				continue // the cluster is removed, or the shard publishes its first mark when it opens
			}
			if was, _, err := parseMark(kvs[0].Value); err == nil && was.log == at.log && at.after(was) {
				writes = append(writes, clientv3.OpPut(string(kvs[0].Key), markValue(at)))
			}
		}
		if len(writes) == 0 {
			continue
		}
		if _, err := etcd.Txn(ctx).Then(writes...).Commit(); err != nil {
			return fmt.Errorf("publishing the last acknowledged positions of this member: %w", err)
		}
	}
	return nil
}

// FindMarks returns the mark files of the stores of a cluster's shards. dir returns the directory
// of a shard's store.
func FindMarks(cluster string, shards int, dir func(number int) string) []MarkFile {
	var files []MarkFile
	for i := range shards {
		if _, err := os.Stat(dir(i) + MarkSuffix); err == nil {
			files = append(files, MarkFile{Cluster: cluster, Number: i, Dir: dir(i)})
		}
	}
	return files
}
