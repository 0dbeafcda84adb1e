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
	// pullBytes and pullMessages bound the messages that a standby requests ahead.
	pullBytes    = 16 << 20
	pullMessages = 256
	// maxSingleReads is the largest number of messages that are read one by one. Creating a
	// consumer for more involves several servers, not only the log's leader.
	maxSingleReads = 512
	// receiveBuffer is the number of received messages that may wait to be applied.
	receiveBuffer = 16
)

// follower applies the log to a store. It is used by one goroutine.
type follower struct {
	st      *stream
	store   *pebble.Store
	seq     uint64      // last message read
	at      logPosition // of the store
	last    logPosition // of the last message that counts; ahead of at within a batch
	parts   [][]byte    // of an incomplete batch
	packing string      // of that batch

	end     *atomic.Uint64 // last known sequence of the log
	applied *atomic.Uint64
	bytes   *atomic.Int64 // of the log, compressed, applied so far
	mark    *mark
}

// resume reads from the store where to continue.
func (f *follower) resume() error {
	stored, err := f.store.LogPosition()
	if err != nil {
		return err
	}
	if f.at, err = decodeLogPosition(stored); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	f.seq, f.last, f.parts = f.at.seq, f.at, nil
	f.applied.Store(f.at.seq)
	return nil
}

// verify returns nil if a record is the next message of the log and continues the ones before it, or is void.
// It changes nothing.
func (f *follower) verify(r record) error {
	if r.seq != f.seq+1 {
		return fmt.Errorf("%w: message %d follows message %d", errBehind, r.seq, f.seq)
	}
	if !r.continues(f.last) {
		return nil
	}
	switch {
	case r.sumAfter(f.last.sum) != r.sum:
		return fmt.Errorf("%w: message %d of the log does not continue the store's content, or is damaged",
			engine.ErrLogLost, r.seq)
	case r.isEpoch() && r.log != f.st.id.String():
		return fmt.Errorf("%w: message %d belongs to log %s, but the shard's log is %s", engine.ErrLogLost, r.seq,
			r.log, f.st.id)
	case r.isEpoch():
		return nil
	case r.part != len(f.parts)+1:
		return fmt.Errorf("%w: message %d is part %d of a batch, but follows part %d", engine.ErrLogLost, r.seq,
			r.part, len(f.parts))
	case r.part > 1 && r.packing != f.packing:
		return fmt.Errorf("%w: message %d has packing %q, but the earlier part of its batch %q", engine.ErrLogLost,
			r.seq, r.packing, f.packing)
	}
	return nil
}

// applyRecord applies the next message of the log, if it verifies.
func (f *follower) applyRecord(r record) error {
	if err := f.verify(r); err != nil {
		return err
	}
	if !r.continues(f.last) {
		f.seq = r.seq
		f.applied.Store(r.seq)
		return nil // void
	}
	if err := knownPacking(r.packing); err != nil {
		return fmt.Errorf("message %d: %w", r.seq, err)
	}
	at := logPosition{log: f.st.id, seq: r.seq, epoch: r.epoch, index: r.index, sum: r.sum}
	f.seq, f.last = r.seq, at
	if r.isEpoch() {
		f.parts = nil // an earlier owner left the batch incomplete
		return f.apply(nil, at)
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

// applyConfirmed applies the next message of the log, of which the server served has returned another one or
// none. It applies nothing but a message that verifies.
func (f *follower) applyConfirmed(ctx context.Context, served string) error {
	r, err := f.st.confirm(ctx, f.seq+1, served, func(r record) bool { return f.verify(r) == nil })
	switch {
	case errors.Is(err, errNoMessage):
		return errBehind
	case errors.Is(err, errForeign):
		return fmt.Errorf("%w: %w", engine.ErrLogLost, err)
	case err != nil:
		return err
	}
	return f.applyRecord(r)
}

// applyReceived applies a message that a consumer has delivered, and before it those that the consumer's
// replica lacks and another one has.
func (f *follower) applyReceived(ctx context.Context, r record, parseErr error, served func() string) error {
	if r.seq <= f.seq {
		return f.applyRecord(r) // an error
	}
	for f.seq < r.seq {
		if parseErr == nil && f.verify(r) == nil {
			return f.applyRecord(r)
		}
		if err := f.applyConfirmed(ctx, served()); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) apply(batch []byte, at logPosition) error {
	if err := f.store.Apply(batch, at.encode()); err != nil {
		return fmt.Errorf("applying message %d of the log: %w", at.seq, err)
	}
	f.at = at
	f.applied.Store(at.seq)
	if at.index == 0 {
		f.mark.begin(at)
	} else {
		f.mark.advance(at)
	}
	return nil
}

// follow applies the log as it grows. When until is not 0, it returns nil after it has
// applied that message; otherwise it returns only with an error.
func (f *follower) follow(ctx context.Context, until uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin, beginCancel := context.WithTimeout(ctx, callTimeout)
	defer beginCancel()
	consumer, err := f.st.handle.OrderedConsumer(begin, jetstream.OrderedConsumerConfig{
		DeliverPolicy:    jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:      f.seq + 1,
		MaxResetAttempts: 1, // the caller retries sooner than the library
	})
	if err != nil {
		return fmt.Errorf("following the log: %w", err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(pullMessages, pullBytes),
		jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return fmt.Errorf("following the log: %w", err)
	}
	arrived := receive(ctx, messages)
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
		if err := f.applyReceived(ctx, r, err, func() string { return serverOf(consumer) }); err != nil {
			return err
		}
	}
	return nil
}

// serverOf returns the server whose replica a consumer reads; "" if that is not known.
func serverOf(c jetstream.Consumer) string {
	if info := c.CachedInfo(); info != nil && info.Cluster != nil {
		return info.Cluster.Leader
	}
	return ""
}

// received is a message or an error from a consumer of the log.
type received struct {
	msg jetstream.Msg
	err error // the last element
}

// receive forwards the messages of a consumer until the context ends. The caller never waits for
// the consumer itself: while the log has no leader, Next and Stop take up to ten seconds,
// which is when a standby has to become the owner.
func receive(ctx context.Context, messages jetstream.MessagesContext) <-chan received {
	context.AfterFunc(ctx, messages.Stop)
	arrived := make(chan received, receiveBuffer)
	go func() {
		for {
			msg, err := messages.Next()
			select {
			case arrived <- received{msg, err}:
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

// catchUp applies everything that is in the log at the time of the call.
func (f *follower) catchUp(ctx context.Context) error {
	state, err := f.st.state(ctx)
	if err != nil {
		return err
	}
	f.end.Store(state.LastSeq)
	if state.LastSeq > f.seq+maxSingleReads {
		if err := f.follow(ctx, state.LastSeq); err != nil {
			return err
		}
	}
	for f.seq < state.LastSeq {
		r, err := f.st.read(ctx, nil, f.seq+1)
		switch {
		case err == nil && f.verify(r) == nil:
			err = f.applyRecord(r)
		case err == nil, errors.Is(err, errNoMessage), errors.Is(err, errForeign):
			err = f.applyConfirmed(ctx, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
