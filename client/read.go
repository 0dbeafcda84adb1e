package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"
)

// readIdle is how long Read waits for a message that it expects. What it expects
// may be gone: trimmed, or not a message for readers.
const readIdle = 3 * time.Second

// Read reads the messages that a topic has now, from a position on, and disturbs
// no subscription. It ends when it has read all that were there when it began.
func (t *Topic) Read(ctx context.Context, from Position) iter.Seq2[*Received, error] {
	return func(yield func(*Received, error) bool) {
		ends, err := t.ends(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(ends) == 0 {
			return
		}
		idle, cancel := context.WithCancel(ctx)
		defer cancel()
		timer := time.AfterFunc(readIdle, cancel)
		defer timer.Stop()
		for received, err := range t.Tail(idle, from) {
			if err != nil {
				yield(nil, err)
				return
			}
			timer.Stop()
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
			timer.Reset(readIdle)
		}
	}
}

// ends are the last entries of the partitions that have messages; the partition
// of a topic without any is -1.
func (t *Topic) ends(ctx context.Context) (map[int64]int64, error) {
	partitions, err := t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	ends := make(map[int64]int64)
	if partitions == 0 {
		return ends, t.end(ctx, -1, ends)
	}
	for i := range partitions {
		if err := t.partition(i).end(ctx, int64(i), ends); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

func (t *Topic) end(ctx context.Context, partition int64, ends map[int64]int64) error {
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
	id, err := parseID(stats.Last)
	if err != nil {
		return errors.New("the server's statistics have no last entry")
	}
	ends[partition] = id.entry
	return nil
}
