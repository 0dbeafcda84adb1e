package messaging

import (
	"context"
	"errors"
	"time"

	"freshet/internal/storage/engine"
)

const (
	// maxSeekSteps bounds how often seekNewest halves the time in which the newest messages may be.
	maxSeekSteps = 16
	// maxSeekPartitions is the largest number of partitions of which seekNewest compares publish times.
	maxSeekPartitions = 64
)

// seekNewest moves the tail to the newest n messages of the topic, or to all if it has fewer, and at least to
// the newest one of each partition. On several partitions it moves to a time since which they have at least
// n messages, and seldom many more; a partition contributes at most n. Topics with very many partitions, or
// with a damaged message at such a time, get an equal share of each partition.
func (t *Tail) seekNewest(ctx context.Context, parts []engine.PartitionStats, n int) error {
	share := (n + len(parts) - 1) / len(parts)
	if len(parts) == 1 || len(parts) > maxSeekPartitions {
		t.next = newest(parts, share)
		return nil
	}
	found, err := t.newestByTime(ctx, parts, n)
	if errors.Is(err, engine.ErrCorrupt) {
		found, err = newest(parts, share), nil
	}
	if err == nil {
		t.next = found
	}
	return err
}

// newest returns the entry of the nth newest message of each partition, or of its first one.
func newest(parts []engine.PartitionStats, n int) []uint64 {
	out := make([]uint64, len(parts))
	for i, p := range parts {
		out[i] = p.Next - min(uint64(n), p.Next-p.First) //nolint:gosec // n is positive
	}
	return out
}

// newestByTime returns the first entries of the newest messages, at least n of all partitions together.
func (t *Tail) newestByTime(ctx context.Context, parts []engine.PartitionStats, n int) ([]uint64, error) {
	most := newest(parts, n)
	last := newest(parts, 1)
	from, to := int64(0), int64(0) // publish times: since from there are at least n messages, since to there are fewer
	for i := range parts {
		if most[i] == parts[i].Next {
			continue // empty
		}
		records, err := t.consumer.read(ctx, t.target.id,
			engine.ReadRequest{Partition: t.first + int32(i), From: most[i], Max: 1})
		if err != nil {
			return nil, err
		}
		if len(records) > 0 && (from == 0 || records[0].PublishTime < from) {
			from = records[0].PublishTime
		}
		to = max(to, parts[i].LastPublish+1)
	}
	found := most
	for range maxSeekSteps {
		middle := from + (to-from)/2
		if middle <= from {
			break
		}
		at, count, err := t.since(ctx, parts, most, time.UnixMilli(middle))
		if err != nil {
			return nil, err
		}
		if count < n {
			to = middle
			continue
		}
		if from, found = middle, at; count <= n+n/8 {
			break
		}
	}
	for i := range found {
		found[i] = min(found[i], last[i])
	}
	return found, nil
}

// since returns the first entry of each partition that was published at or after a time, but none before the
// entries in atLeast, and how many messages follow.
func (t *Tail) since(ctx context.Context, parts []engine.PartitionStats, atLeast []uint64, at time.Time,
) (entries []uint64, count int, err error) {
	entries = make([]uint64, len(parts))
	for i := range parts {
		entries[i] = parts[i].Next
		if parts[i].LastPublish >= at.UnixMilli() {
			records, err := t.consumer.read(ctx, t.target.id,
				engine.ReadRequest{Partition: t.first + int32(i), From: atLeast[i], Since: at, Max: 1})
			if err != nil {
				return nil, 0, err
			}
			if len(records) > 0 {
				entries[i] = min(entries[i], max(records[0].ID.Entry, atLeast[i]))
			}
		}
		count += int(parts[i].Next - entries[i]) //nolint:gosec // at most the messages asked for
	}
	return entries, count, nil
}
