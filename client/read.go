package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
)

// Read reads the current messages of a topic from a position, without affecting subscriptions.
// It ends after the last message that the topic had at the start.
func (t *Topic) Read(ctx context.Context, from Position) iter.Seq2[*Received, error] {
	return func(yield func(*Received, error) bool) {
		ends, err := t.ends(ctx, from)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(ends) == 0 {
			return
		}
		// The last entry may not be visible to readers, or may have been deleted. In that
		// case the server's heartbeat, which follows 15 s without a message, ends Read.
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		for received, err := range t.tail(reading, &tail{from: from, onHeartbeat: cancel}) {
			if err != nil {
				yield(nil, err)
				return
			}
			id, err := parseID(received.StringID)
			if err != nil {
				yield(nil, err)
				return
			}
			end, expected := ends[id.partition]
			if expected && id.entry <= end && !yield(received, nil) {
				return
			}
			if expected && id.entry >= end {
				delete(ends, id.partition)
			}
			if len(ends) == 0 {
				return
			}
		}
	}
}

// ends returns the last entry of each partition with messages from a position. A topic without
// partitions has the partition -1.
func (t *Topic) ends(ctx context.Context, from Position) (map[int64]int64, error) {
	ends := make(map[int64]int64)
	if from == (Position{}) || from == Latest {
		return ends, t.err
	}
	partitions, err := t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	if partitions == 0 {
		return ends, t.end(ctx, from, -1, ends)
	}
	for i := range partitions {
		if err := t.partition(i).end(ctx, from, int64(i), ends); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

func (t *Topic) end(ctx context.Context, from Position, partition int64, ends map[int64]int64) error {
	if !from.time.IsZero() {
		since := strconv.FormatInt(max(from.time.UnixMilli(), 0), 10)
		err := t.call(ctx, http.MethodGet, t.admin("/messageid/"+since), nil, nil, nil)
		if errors.Is(err, ErrNotFound) {
			return nil // no message since that time
		}
		if err != nil {
			return err
		}
	}
	var stats struct {
		Entries int64  `json:"numberOfEntries"`
		Last    string `json:"lastConfirmedEntry"`
	}
	if err := t.call(ctx, http.MethodGet, t.admin("/internalStats"), nil, nil, &stats); err != nil {
		return err
	}
	if stats.Entries == 0 {
		return nil
	}
	last, err := parseID(stats.Last)
	if err != nil {
		return errors.New("topic statistics of the server have no last entry")
	}
	at, err := parseID(from.id)
	if err == nil && at.partition == partition && (at.entry > last.entry || from.after && at.entry == last.entry) {
		return nil // the position is after the last entry
	}
	ends[partition] = last.entry
	return nil
}
