package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// slack reserves space for a message's headers and envelope.
const slack = 1 << 10

// errPurged is returned when the message that decides the outcome of a publish is purged.
var errPurged = errs.New(errs.Unavailable, "outcome of the append is unknown, because a snapshot replaced the "+
	"records; read the journal and decide again")

// Append implements engine.Journal.
func (j *journal) Append(ctx context.Context, after uint64, records ...[]byte) (uint64, error) {
	ctx, leave, err := j.s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	total, limit := 0, int(j.s.conn.MaxPayload())-slack
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
		return 0, j.failed(ctx, "appending to", context.Cause(ctx))
	}
	if err := j.expect(ctx, after, len(records) == 0); err != nil {
		return 0, j.failed(ctx, "appending to", err)
	}
	if len(records) == 0 {
		return after, nil
	}
	_, err = j.commit(ctx, j.recordSubject(), func(id [idBytes]byte, tail mark) ([]byte, error) {
		if tail.last > after {
			return nil, engine.ErrConflict
		}
		return encodeRecords(id, after+1, records), nil
	})
	if err != nil {
		return 0, j.failed(ctx, "appending to", err)
	}
	return after + uint64(len(records)), nil
}

// enterAppending begins a call and acquires appending. The caller must call leave.
func (j *journal) enterAppending(ctx context.Context) (_ context.Context, leave func(), err error) {
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

// expect checks that the journal ends at a position. It trusts the cached tail unless surely
// is set or the tail is behind the position. An append without records sets surely,
// because it publishes no condition that the leader checks.
func (j *journal) expect(ctx context.Context, after uint64, surely bool) error {
	tail, _ := j.end()
	if after > tail.last || surely {
		if err := j.barrier(ctx); err != nil {
			return err
		}
		tail, _ = j.end()
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

// commit publishes a message after the tail and returns its sequence when it is
// committed. build creates the message for a tail or returns why it cannot. It is called
// again when another writer's message got the sequence. The caller holds appending.
func (j *journal) commit(ctx context.Context, subject string,
	build func(id [idBytes]byte, tail mark) ([]byte, error),
) (uint64, error) {
	var id [idBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	for {
		tail, _ := j.end()
		data, err := build(id, tail)
		if err != nil {
			return 0, err
		}
		ours, err := j.claim(ctx, subject, id, tail, data)
		if err != nil || ours {
			return tail.seq + 1, err
		}
	}
}

// claim publishes a message at the sequence after the tail until some message is committed
// there. It reports whether that is this message, and notes the committed one. The caller
// holds appending.
func (j *journal) claim(ctx context.Context, subject string, id [idBytes]byte, tail mark,
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
	msg.Header.Set(firstHeader, strconv.FormatUint(m.first, 10))
	msg.Header.Set(lastHeader, strconv.FormatUint(m.last(), 10))
	doubt := false // whether the outcome of some publish is unknown
	for wait, answer := minBackoff, minAnswer; ; wait, answer = min(2*wait, maxBackoff), min(2*answer, maxAnswer) {
		err := j.publish(ctx, msg, m, answer)
		switch {
		case err == nil:
			return true, nil
		case final(err) && !doubt:
			return false, err
		case !refused(err, codeWrongLastSequence, codeWrongLastConstant):
			doubt = true
		}
		look, cancel := context.WithTimeout(ctx, answer)
		winner, lookErr := j.winner(look, m.seq)
		cancel()
		switch {
		case winner != nil:
			return winner.id == id, nil
		case errors.Is(lookErr, errNoMessage) && doubt:
			return false, errPurged
		case errors.Is(lookErr, errNoMessage):
			return false, nil // the server refused the publish, and the tail has advanced
		case lookErr != nil && final(lookErr):
			return false, lookErr
		}
		if !errors.Is(err, nats.ErrConnectionClosed) && pause(ctx, wait) {
			continue
		}
		if doubt {
			err = fmt.Errorf("outcome of the append is unknown: %w", err)
		}
		return false, err
	}
}

// publish makes one attempt to store a message at its sequence.
func (j *journal) publish(ctx context.Context, msg *nats.Msg, m *message, answer time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	seq, err := j.s.put(ctx, msg)
	switch {
	case full(err):
		return fmt.Errorf("%w: %w", engine.ErrDiskFull, err)
	case err != nil:
		return err
	case seq != m.seq:
		return errs.Newf(errs.Internal, "message for sequence %d of journal %q was stored at %d", m.seq, j.name, seq)
	}
	j.note(m.mark())
	return nil
}

// winner returns the message that is committed at a sequence, nil while there is none, and
// errNoMessage when it was purged and the journal continues after it.
func (j *journal) winner(ctx context.Context, seq uint64) (*message, error) {
	m, err := j.read(ctx, seq)
	if !errors.Is(err, errNoMessage) {
		return m, err
	}
	info, err := j.look(ctx)
	if err != nil {
		return nil, err
	}
	if info.State.LastSeq < seq {
		return nil, nil //nolint:nilnil // no message yet, and no error
	}
	// A message may have been committed between the two reads.
	return j.read(ctx, seq)
}
