package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

// A lost journal is rebuilt in these steps. A crash between any two of them leaves a journal that
// another attempt, of the same or another member, rebuilds from the first step on.
//
//  1. lock: one member at a time, with a key in etcd that ends with the member's lease.
//  2. fence: a last message ends the old stream, if it exists. Appends are conditional on the last
//     sequence and on a stream without a fence. The sequence alone is not enough: in a stream that
//     has lost its end, the fence can get the sequence of the last record that a writer knows. So
//     each append is either before the fence, and then it is in the stream, or is refused. Every
//     writer that finds the fence reads from etcd which stream is the journal.
//  3. collect: every member reads the rest of the old stream into its copy, as far as it can, and
//     reports what its copy contains (collect.go).
//  4. decide: the longest copy, if it has everything that is known to have existed.
//  5. build: a new stream with another name and identity gets the snapshot and the records of that
//     copy, at their positions. Nobody knows this stream before the next step, and a stream of an
//     attempt that has ended is never used.
//     A stream that did not exist in step 2 is looked for again.
//  6. replace: one transaction in etcd makes the new stream the journal, if the old one still is and
//     this member still has the lock.
//  7. remove: the old stream and those of attempts that have ended are deleted. A crash before it
//     leaves them until the next rebuild, or until the cluster is deleted.

const (
	minHealBackoff = 200 * time.Millisecond
	maxHealBackoff = 5 * time.Second
	goneChecks     = 3 // how often a stream must be missing before that is believed
	goneInterval   = 500 * time.Millisecond
	fenceTimeout   = 30 * time.Second
	buildBytes     = 512 << 10 // of records in one message of a rebuilt stream
)

// heal rebuilds the journal or adopts the stream that another member has rebuilt, until that succeeds.
func (g *guarded) heal() {
	backoff := retry.Backoff{Min: minHealBackoff, Max: maxHealBackoff}
	for g.s.ctx.Err() == nil {
		err := g.healOnce(g.s.ctx)
		if err == nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.loss, g.obstacle, g.closed, g.healing = nil, nil, false, false
			g.changeLocked()
			return
		}
		var elsewhere *errRebuiltElsewhere
		if !errors.As(err, &elsewhere) && !errors.Is(err, errOvertaken) && g.s.ctx.Err() == nil {
			g.close(err)
		}
		_ = backoff.Sleep(g.s.ctx)
	}
	g.mu.Lock()
	g.healing = false
	g.mu.Unlock()
}

// close makes the journal return errors until an attempt succeeds. The reason is in etcd before a caller
// gets the error, because the caller may close the journals then.
func (g *guarded) close(obstacle error) {
	g.mu.Lock()
	loss := g.loss
	g.mu.Unlock()
	if ok, _ := g.keeper.warnings.Allow("heal"); ok {
		g.s.log.Error("lost journal cannot be rebuilt yet; retrying",
			slog.String("journal", g.s.opts.Prefix+"/"+g.name), slog.Any("error", obstacle))
	}
	_ = g.registry.report(g.s.ctx, g.value(), fmt.Sprintf("%v; %v", loss, obstacle)) // the next attempt repeats it
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.obstacle = true, obstacle
	g.changeLocked()
}

// healOnce makes one attempt.
func (g *guarded) healOnce(ctx context.Context) error {
	keys, err := g.registry.read(ctx)
	if err != nil {
		return err
	}
	j, _ := g.healthy()
	if keys.stream.ID != j.id {
		return g.adopt(ctx, keys.stream)
	}
	if back, err := g.isBack(ctx, j, keys); err != nil || back {
		return errors.Join(err, g.registry.clearLost(ctx, keys.streamText))
	}
	session := g.s.opts.Session()
	if session == nil {
		return errors.New("this member has no lease in the ensemble at the moment")
	}
	lock, err := g.registry.lock(ctx, g.s.opts.Member, rand.Text(), session.Lease())
	if err != nil {
		return err
	}
	defer lock.release(ctx)
	// The key may have changed before this member got the lock.
	if keys, err = g.registry.read(ctx); err != nil {
		return err
	}
	if keys.stream.ID != j.id {
		return errOvertaken
	}
	end, fenced, err := j.fence(ctx)
	if err != nil {
		return fmt.Errorf("closing the damaged stream: %w", err)
	}
	chosen, err := g.choose(ctx, keys, end)
	if err != nil {
		return err
	}
	v, err := g.build(ctx, chosen)
	if chosen.path != g.keeper.path {
		_ = os.Remove(chosen.path) // the next rebuild overwrites it
	}
	if err != nil {
		return fmt.Errorf("rebuilding the journal from the copy of member %q: %w", chosen.Member, err)
	}
	if !fenced {
		// The servers have created a stream since, so they have applied everything that was decided
		// before. A stream that is still missing does not exist.
		if _, fenced, err := j.fence(ctx); err != nil || fenced {
			return errors.Join(err, errStreamReturned)
		}
	}
	if err := lock.replace(ctx, keys.streamText, v); err != nil {
		return err
	}
	g.s.log.Warn("journal was rebuilt from a member's copy", slog.String("journal", g.s.opts.Prefix+"/"+g.name),
		slog.String("from", chosen.Member), slog.Uint64("position", v.Position))
	if err := g.adopt(ctx, v); err != nil {
		return err
	}
	g.removeOthers(ctx, v)
	return nil
}

// isBack reports whether a stream that did not exist exists after all. A server that has just become
// the leader of the servers may not know all streams yet.
func (g *guarded) isBack(ctx context.Context, j *journal, keys *journalKeys) (bool, error) {
	for i := range goneChecks {
		var info *natsjs.StreamInfo
		err := withRetry(ctx, func(ctx context.Context) (err error) {
			info, err = j.s.info(ctx, j.stream, "")
			if hasAPICode(err, codeNoStream) {
				info, err = nil, nil
			}
			return err
		})
		if err != nil {
			return false, err
		}
		if info != nil {
			// It exists. Only a stream that was missing before is intact again.
			if i == 0 {
				return false, nil
			}
			intact := identity(info) == j.id && j.readEnd(ctx) == nil && g.checkEnd(ctx, j, keys) == nil
			return intact, nil
		}
		if err := retry.Sleep(ctx, goneInterval); err != nil {
			return false, err
		}
	}
	return false, nil
}

// fence ends the stream, so that nothing can be appended to it. It returns the last position that the
// stream shows; 0 if it shows none. A stream that does not exist, or is not this one, gets no fence.
func (j *journal) fence(ctx context.Context) (end uint64, fenced bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	err = withRetry(ctx, func(ctx context.Context) error {
		info, err := j.info(ctx)
		var loss *lossError
		if errors.As(err, &loss) {
			return nil
		}
		if err != nil {
			return err
		}
		if fenced, err = j.isFenced(ctx, info.State.LastSeq); err != nil {
			return err
		}
		if !fenced {
			if err := j.publishFence(ctx); err != nil {
				return err
			}
			fenced = true
		}
		end, err = j.shownEnd(ctx) // which cannot change any more
		return err
	})
	return end, fenced, err
}

var errStreamReturned = errors.New("stream that did not exist has returned; trying again")

// publishFence appends the message that ends the stream. It is not conditional, so that it is stored also
// while others write. A second fence, of an attempt without an acknowledgement, changes nothing.
func (j *journal) publishFence(ctx context.Context) error {
	var id [idBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	tail, _ := j.knownTail()
	msg := nats.NewMsg(j.fenceSubject())
	msg.Data = encodeFence(id, tail.last+1)
	msg.Header.Set(nats.ExpectedStreamHdr, j.stream)
	err := j.s.publish(ctx, msg)
	return err
}

// checkFence returns errFenced if the message at a sequence ends the stream. A writer can know the sequence as that
// of the last record, which the stream has lost.
func (j *journal) checkFence(ctx context.Context, seq uint64) error {
	fenced, err := j.isFenced(ctx, seq)
	if fenced {
		return errFenced
	}
	return err
}

func (j *journal) isFenced(ctx context.Context, seq uint64) (bool, error) {
	if seq == 0 {
		return false, nil
	}
	found, err := j.get(ctx, getRequest{Seq: seq})
	if errors.Is(err, errNoMessage) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m, err := decode(found.seq, found.data)
	return err == nil && m.kind == kindFence, nil
}

// shownEnd returns the position of the last record according to the last messages that can be read.
func (j *journal) shownEnd(ctx context.Context) (end uint64, err error) {
	for _, subject := range []string{j.recordSubject(), j.snapshotSubject()} {
		found, err := j.get(ctx, getRequest{LastFor: subject})
		if errors.Is(err, errNoMessage) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if m, err := decode(found.seq, found.data); err == nil {
			end = max(end, m.last())
			j.observe(m.indexEntry())
		}
	}
	return end, nil
}

// build creates a stream with the content of a copy.
func (g *guarded) build(ctx context.Context, from *chosenCopy) (streamValue, error) {
	v := streamValue{Generation: strings.ToLower(rand.Text())[:12]}
	v.ID = v.Generation
	j := newJournal(g.s, g.name, v.Generation)
	if err := j.create(ctx, v.ID); err != nil {
		return v, err
	}
	if err := j.start(ctx); err != nil {
		return v, err
	}
	defer j.unsubscribe()
	f, err := os.Open(from.path)
	if err != nil {
		return v, err
	}
	b := &builder{ctx: ctx, j: j}
	state, err := scanCopy(f, copyVisitor{start: b.start, chunk: b.chunk, message: b.message})
	if err == nil {
		err = b.flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return v, err
	}
	if state.end != from.Position || state.link.String() != from.Sum {
		return v, fmt.Errorf("copy ends at position %d with the sum %s, but had %d with %s", state.end, state.link,
			from.Position, from.Sum)
	}
	last, err := j.Last(ctx)
	if err != nil {
		return v, err
	}
	if last != state.end {
		return v, fmt.Errorf("new stream ends at position %d, want %d", last, state.end)
	}
	v.Position, v.Sum = state.end, state.link.String()
	return v, nil
}

// builder writes the content of a copy to a new stream.
type builder struct {
	ctx      context.Context
	j        *journal
	at       copyStart
	snapshot *snapshotWriter // nil after the snapshot was written
	after    uint64
	records  [][]byte
	bytes    int
}

func (b *builder) start(s copyStart) error {
	b.at, b.after = s, s.Position
	base, err := parseLink(s.Sum)
	if err != nil {
		return err
	}
	b.j.links.put(s.Position, base)
	if s.Position == 0 {
		return nil
	}
	b.snapshot = newSnapshotWriter(b.ctx, b.j, snapshotPointer{
		ID: snapshotID(s.Position), Position: s.Position, Sum: s.Sum,
	})
	return b.finishSnapshot()
}

func (b *builder) chunk(content []byte) error {
	if err := b.snapshot.store(content); err != nil {
		return err
	}
	return b.finishSnapshot()
}

// finishSnapshot makes the snapshot the first message of the stream when all chunks are durable.
func (b *builder) finishSnapshot() error {
	p := b.snapshot.finish()
	if p.Bytes < b.at.Bytes {
		return nil
	}
	if p.SHA256 != b.at.SHA256 {
		return fmt.Errorf("%w: the checksum of its snapshot does not match", errDamagedCopy)
	}
	b.snapshot = nil
	return b.j.installFirst(b.ctx, p)
}

func (b *builder) message(m *message, _ link) error {
	err := m.records(b.after+uint64(len(b.records)), func(_ uint64, record []byte) error {
		b.records = append(b.records, record)
		b.bytes += len(record) + 8
		return nil
	})
	if err == nil && b.bytes >= buildBytes {
		err = b.flush()
	}
	return err
}

// flush appends the collected records. The copy may have more in one message than the servers accept
// now, so a large message is written in parts.
func (b *builder) flush() error {
	for len(b.records) > 0 {
		n, size := 0, 0
		for n < len(b.records) && (n == 0 || size+len(b.records[n]) <= 2*buildBytes) {
			size += len(b.records[n]) + 8
			n++
		}
		last, err := b.j.Append(b.ctx, b.after, b.records[:n]...)
		if err != nil {
			return err
		}
		b.after, b.records = last, b.records[n:]
	}
	b.records, b.bytes = nil, 0
	return nil
}

// adopt makes another stream the journal on this member.
func (g *guarded) adopt(ctx context.Context, v streamValue) error {
	g.mu.Lock()
	old, delivered := g.stream, g.delivered
	g.mu.Unlock()
	next := g.newStream(v)
	next.links = old.links // the records are the same
	if err := next.start(ctx); err != nil {
		next.unsubscribe()
		return err
	}
	tail, _ := next.knownTail()
	if tail.last < delivered {
		next.unsubscribe()
		return fmt.Errorf("journal continues after position %d, but this member has used records up to position %d "+
			"that were given up; restart this member", tail.last, delivered)
	}
	next.links.cut(max(v.Position, tail.last)) // an operator may have given up the records after it
	g.keeper.adopt(v)
	g.setStream(next, v)
	close(old.retired)
	old.unsubscribe()
	return nil
}

// adopt continues the copy with another stream.
func (k *keeper) adopt(v streamValue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.matchLocked(v)
	k.compactedAt = time.Time{}
}

// removeOthers deletes the streams of the journal that are not in use any more.
func (g *guarded) removeOthers(ctx context.Context, v streamValue) {
	all, err := g.s.streams(ctx)
	if err != nil {
		return // the next rebuild or the deletion of the cluster removes them
	}
	first, current := newJournal(g.s, g.name, "").stream, newJournal(g.s, g.name, v.Generation).stream
	for _, name := range all {
		if name == current || name != first && !strings.HasPrefix(name, first+"_") {
			continue
		}
		if err := g.s.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, natsjs.ErrStreamNotFound) {
			g.s.log.Warn("removing a replaced stream of a journal failed; the next rebuild repeats it",
				slog.String("stream", name), slog.Any("error", err))
		}
	}
}

// installFirst makes a snapshot whose chunks are durable the first message of a new stream.
func (j *journal) installFirst(ctx context.Context, p snapshotPointer) error {
	body, err := encodePointer(p)
	if err != nil {
		return err
	}
	ctx, leave, err := j.lockAppending(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, err = j.commitLocked(ctx, j.snapshotSubject(), func(id [idBytes]byte, tail indexEntry) ([]byte, error) {
		if tail.seq > 0 {
			return nil, engine.ErrConflict
		}
		return encodeSnapshot(id, p.Position+1, body), nil
	})
	if err != nil {
		return err
	}
	return withRetry(ctx, func(ctx context.Context) error {
		_, err := j.latestSnapshot(ctx)
		return err
	})
}
