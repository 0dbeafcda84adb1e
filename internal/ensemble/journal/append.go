package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

// envelopeReserve reserves space for a message's headers and envelope.
const envelopeReserve = 1 << 10

// errOutcomePurged is returned when the message that decides the outcome of a publish is purged.
var errOutcomePurged = errs.New(errs.Unavailable, "outcome of the append is unknown, because a snapshot replaced the "+
	"records; read the journal and decide again")

// Append implements engine.Journal.
func (j *journal) Append(ctx context.Context, after uint64, records ...[]byte) (uint64, error) {
	ctx, leave, err := j.s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	total, limit := 0, int(j.s.conn.MaxPayload())-envelopeReserve
	for _, r := range records {
		total += len(r) + 8
	}
	if total > limit {
		return 0, fmt.Errorf("%w: %d bytes in one append, at most %d", engine.ErrTooLarge, total, limit)
	}
	select {
	case j.appending <- struct{}{}:
		defer func() { <-j.appending }()
	case <-ctx.Done():
		return 0, j.wrapError(ctx, "appending to", context.Cause(ctx))
	}
	if err := j.expectTailLocked(ctx, after, len(records) == 0); err != nil {
		return 0, j.wrapError(ctx, "appending to", err)
	}
	if len(records) == 0 {
		return after, nil
	}
	_, err = j.commitLocked(ctx, j.recordSubject(), func(id [idBytes]byte, tail indexEntry) ([]byte, error) {
		if tail.last > after {
			return nil, engine.ErrConflict
		}
		return encodeRecords(id, after+1, records), nil
	})
	if err != nil {
		return 0, j.wrapError(ctx, "appending to", err)
	}
	return after + uint64(len(records)), nil
}

// lockAppending begins a call and acquires appending. The caller must call leave.
func (j *journal) lockAppending(ctx context.Context) (_ context.Context, leave func(), err error) {
	ctx, left, err := j.s.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	select {
	case j.appending <- struct{}{}:
		return ctx, func() { <-j.appending; left() }, nil
	case <-ctx.Done():
		defer left()
		return nil, nil, context.Cause(ctx)
	}
}

// expectTailLocked checks that the journal ends at a position. It trusts the cached tail unless surely
// is set or the tail is behind the position. An append without records sets surely,
// because it publishes no condition that the leader checks.
func (j *journal) expectTailLocked(ctx context.Context, after uint64, linearizable bool) error {
	tail, _ := j.knownTail()
	if after > tail.last || linearizable {
		if err := j.barrier(ctx); err != nil {
			return err
		}
		tail, _ = j.knownTail()
	}
	switch {
	case after < tail.last:
		return engine.ErrConflict
	case after > tail.last:
		return fmt.Errorf("%w: append after position %d of journal %q, which ends at %d", engine.ErrInvalid, after,
			j.name, tail.last)
	}
	return nil
}

// commitLocked publishes a message after the tail and returns its sequence when it is
// committed. build creates the message for a tail or returns why it cannot. It is called
// again when another writer's message got the sequence. The caller holds appending.
func (j *journal) commitLocked(ctx context.Context, subject string,
	build func(id [idBytes]byte, tail indexEntry) ([]byte, error),
) (uint64, error) {
	var id [idBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	for {
		tail, _ := j.knownTail()
		data, err := build(id, tail)
		if err != nil {
			return 0, err
		}
		ours, err := j.claimLocked(ctx, subject, id, tail, data)
		if err != nil || ours {
			return tail.seq + 1, err
		}
	}
}

// claimLocked publishes a message at the sequence after the tail until some message is committed
// there. It reports whether that is this message, and notes the committed one. The caller
// holds appending.
func (j *journal) claimLocked(ctx context.Context, subject string, id [idBytes]byte, tail indexEntry,
	data []byte,
) (ours bool, err error) {
	m, err := decode(tail.seq+1, data)
	if err != nil {
		return false, err
	}
	msg := nats.NewMsg(subject)
	msg.Data = data
	msg.Header.Set(nats.ExpectedStreamHdr, j.stream)
	msg.Header.Set(nats.ExpectedLastSeqHdr, strconv.FormatUint(tail.seq, 10))
	msg.Header.Set(nats.ExpectedLastSubjSeqHdr, "0") // the append fails if the stream has a fence
	msg.Header.Set(natsjs.ExpectedLastSubjSeqSubjHeader, j.fenceSubject())
	msg.Header.Set(firstHeader, strconv.FormatUint(m.first, 10))
	msg.Header.Set(lastHeader, strconv.FormatUint(m.last(), 10))
	if m.kind == kindRecords {
		// An earlier message without a sum leaves the link unknown; readers compute it.
		if m.before = j.links.get(m.first - 1); m.before.known() {
			msg.Header.Set(sumHeader, m.before.String())
		}
	}
	p := j.s.newPublisher(msg, m.seq)
	defer p.end()
	ambiguous := false // whether the outcome of some publish is unknown
	accepted := false  // the leader has a message at the sequence, as far as the writer knows
	for wait, timeout := minBackoff, minTimeout; ; wait, timeout = min(2*wait, maxBackoff), min(2*timeout, maxTimeout) {
		err := j.publishLocked(ctx, p, m, !accepted)
		accepted = errors.Is(err, errAccepted)
		refused := hasAPICode(err, codeWrongLastSequence, codeWrongLastConstant)
		switch {
		case err == nil:
			return true, nil
		case isFinal(err) && !ambiguous:
			return false, err
		case !refused && !errors.Is(err, nats.ErrNoResponders):
			ambiguous = true
		}
		look, cancel := context.WithTimeout(ctx, timeout)
		winner, lookErr := j.winner(look, m.seq)
		if refused && winner == nil && lookErr == nil {
			lookErr = j.checkFence(look, tail.seq)
		}
		cancel()
		switch {
		case winner != nil && winner.id == id:
			j.noteOwn(m)
			return true, nil
		case winner != nil:
			return false, nil
		case errors.Is(lookErr, errFenced):
			return false, errFenced // the fence has the sequence, so this message is never stored
		case errors.Is(lookErr, errNoMessage) && ambiguous:
			return false, errOutcomePurged
		case errors.Is(lookErr, errNoMessage):
			return false, nil // the server refused the publish, and the tail has advanced
		case lookErr != nil && isFinal(lookErr) && ambiguous:
			// The error does not wrap a loss, because a caller may repeat what a loss has refused.
			return false, errs.Newf(errs.Unavailable, "outcome of the append is unknown: %v", lookErr)
		case lookErr != nil && isFinal(lookErr):
			return false, lookErr
		}
		if !errors.Is(err, nats.ErrConnectionClosed) && retry.Sleep(ctx, wait) == nil {
			continue
		}
		if ambiguous {
			err = fmt.Errorf("outcome of the append is unknown: %w", err)
		}
		return false, err
	}
}

// publishLocked waits until a message is stored at its sequence. It sends the message first, unless the leader
// has accepted it already. When the outcome is not known, it returns an error that is not final.
func (j *journal) publishLocked(ctx context.Context, p *publisher, m *message, send bool) error {
	if send {
		if err := p.send(); err != nil {
			return err
		}
	}
	seq, err := p.await(ctx)
	switch {
	case isStorageFull(err):
		return fmt.Errorf("%w: %w", engine.ErrDiskFull, err)
	case err != nil:
		return err
	case seq != m.seq:
		return errs.Newf(errs.Internal, "message for sequence %d of journal %q was stored at %d", m.seq, j.name, seq)
	}
	j.observe(m.indexEntry())
	j.noteOwn(m)
	return nil
}

// noteOwn caches the link after a message that this member has written, and passes it to the copy.
func (j *journal) noteOwn(m *message) {
	if m.kind == kindRecords && j.links.follow(m) == nil {
		j.accept(m)
	}
}

// winner returns the message that is committed at a sequence, nil while there is none, and
// errNoMessage when it was purged and the journal continues after it.
func (j *journal) winner(ctx context.Context, seq uint64) (*message, error) {
	m, err := j.readMessage(ctx, seq)
	if !errors.Is(err, errNoMessage) {
		return m, err
	}
	info, err := j.refreshTail(ctx)
	if err != nil {
		return nil, err
	}
	if info.State.LastSeq < seq {
		return nil, nil //nolint:nilnil // no message yet, and no error
	}
	// A message may have been committed between the two reads.
	return j.readMessage(ctx, seq)
}
