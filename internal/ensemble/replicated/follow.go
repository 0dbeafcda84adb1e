package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

const (
	// pullBytes and pullMessages are what a standby asks the log for ahead.
	pullBytes    = 32 << 20
	pullMessages = 256
	// readSingly is how many messages are rather read one by one than with a
	// consumer, which takes more than the log's leader to make.
	readSingly = 512
	// heardAhead is how many messages wait to be applied.
	heardAhead = 16
)

// follower applies the log to a store. One goroutine uses it.
type follower struct {
	st      *stream
	store   *pebble.Store
	seq     uint64   // last message looked at
	at      mark     // of the store
	last    mark     // of the last message that counts; ahead of at within a batch
	parts   [][]byte // of a batch that is not complete yet
	packing string   // of that batch

	end     *atomic.Uint64 // last sequence of the log that was heard of
	applied *atomic.Uint64
	bytes   *atomic.Int64 // of the log, packed, applied, ever
}

// resume reads from the store where to go on.
func (f *follower) resume() error {
	stored, err := f.store.Mark()
	if err != nil {
		return err
	}
	if f.at, err = decodeMark(stored); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	f.seq, f.last, f.parts = f.at.position, f.at, nil
	f.applied.Store(f.at.position)
	return nil
}

// take applies the next message of the log.
func (f *follower) take(r record) error {
	if r.seq != f.seq+1 {
		return fmt.Errorf("%w: message %d comes after message %d", errBehind, r.seq, f.seq)
	}
	f.seq = r.seq
	if !r.continues(f.last) {
		f.applied.Store(r.seq)
		return nil // void
	}
	sum := r.sumAfter(f.last.sum)
	switch {
	case sum != r.sum:
		return fmt.Errorf("%w: message %d of the log does not continue what the store has, or is damaged",
			engine.ErrLogLost, r.seq)
	case r.begins() && r.log != f.st.id.String():
		return fmt.Errorf("%w: message %d is of log %s, the shard's log is %s", engine.ErrLogLost, r.seq,
			r.log, f.st.id)
	}
	if err := knownPacking(r.packing); err != nil {
		return fmt.Errorf("message %d: %w", r.seq, err)
	}
	at := mark{log: f.st.id, position: r.seq, epoch: r.epoch, index: r.index, sum: sum}
	f.last = at
	if r.begins() {
		f.parts = nil // of an owner that did not come to the end
		return f.apply(nil, at)
	}
	switch {
	case r.part != len(f.parts)+1:
		return fmt.Errorf("%w: message %d is part %d of a batch after part %d", engine.ErrLogLost, r.seq,
			r.part, len(f.parts))
	case r.part > 1 && r.packing != f.packing:
		return fmt.Errorf("%w: message %d is part of a batch with packing %q after one with %q", engine.ErrLogLost,
			r.seq, r.packing, f.packing)
	}
	if r.part < r.parts {
		f.parts, f.packing = append(f.parts, r.data), r.packing
		return nil
	}
	data := r.data
	if r.parts > 1 {
		data = slices.Concat(append(f.parts, r.data)...)
		f.parts = nil
	}
	batch, err := unpack(r.packing, data)
	if err != nil {
		return fmt.Errorf("%w: message %d of the log: %w", engine.ErrCorrupt, r.seq, err)
	}
	if err := f.apply(batch, at); err != nil {
		return err
	}
	f.bytes.Add(int64(len(data)))
	return nil
}

func (f *follower) apply(batch []byte, at mark) error {
	if err := f.store.Apply(batch, at.encode()); err != nil {
		return fmt.Errorf("applying message %d of the log: %w", at.position, err)
	}
	f.at = at
	f.applied.Store(at.position)
	return nil
}

// tail applies the log as it grows, up to a message when until is not 0. It returns
// nil only in that case.
func (f *follower) tail(ctx context.Context, until uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin, beginCancel := context.WithTimeout(ctx, callPatience)
	defer beginCancel()
	consumer, err := f.st.handle.OrderedConsumer(begin, jetstream.OrderedConsumerConfig{
		DeliverPolicy:    jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:      f.seq + 1,
		MaxResetAttempts: 1, // whoever follows tries again sooner than the library does
	})
	if err != nil {
		return fmt.Errorf("following the log: %w", err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(pullMessages, pullBytes),
		jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return fmt.Errorf("following the log: %w", err)
	}
	arrived := listen(ctx, messages)
	for until == 0 || f.seq < until {
		var msg jetstream.Msg
		select {
		case next := <-arrived:
			if next.err != nil {
				return fmt.Errorf("following the log: %w", next.err)
			}
			msg = next.msg
		case <-ctx.Done():
			return ctx.Err()
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("following the log: %w", err)
		}
		f.end.Store(max(f.end.Load(), meta.Sequence.Stream+meta.NumPending))
		r, err := parseRecord(meta.Sequence.Stream, msg.Headers(), msg.Data())
		if err != nil {
			return fmt.Errorf("%w: %w", engine.ErrLogLost, err)
		}
		if err := f.take(r); err != nil {
			return err
		}
	}
	return nil
}

// heard is what a consumer of the log says.
type heard struct {
	msg jetstream.Msg
	err error // it says nothing behind one
}

// listen passes on what a consumer says until the context ends. Nobody waits for the
// consumer itself: while the log has no leader, asking it for a message and stopping it
// both take up to ten seconds, and that is when a standby becomes the owner.
func listen(ctx context.Context, messages jetstream.MessagesContext) <-chan heard {
	context.AfterFunc(ctx, messages.Stop)
	arrived := make(chan heard, heardAhead)
	go func() {
		for {
			msg, err := messages.Next()
			select {
			case arrived <- heard{msg, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return arrived
}

// catchUp applies everything that is in the log now.
func (f *follower) catchUp(ctx context.Context) error {
	state, err := f.st.state(ctx)
	if err != nil {
		return err
	}
	f.end.Store(state.LastSeq)
	if state.LastSeq > f.seq+readSingly {
		if err := f.tail(ctx, state.LastSeq); err != nil {
			return err
		}
	}
	for f.seq < state.LastSeq {
		r, err := f.st.read(ctx, nil, f.seq+1)
		if errors.Is(err, errNoMessage) {
			return errBehind
		}
		if err != nil {
			return err
		}
		if err := f.take(r); err != nil {
			return err
		}
	}
	return nil
}
