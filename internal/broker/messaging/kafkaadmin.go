package messaging

import (
	"cmp"
	"context"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// Grow increases the number of partitions to partitions. With dryRun it only validates the request.
func (t *KafkaTopic) Grow(ctx context.Context, partitions int32, dryRun bool) error {
	if !t.partitioned() {
		return errs.Newf(errs.Conflict, "%w: topic %s has no partitions; make it partitioned first",
			ErrWrongKind, t.topic.name)
	}
	if dryRun {
		return t.log.catalogue.checkGrowth(t.topic, partitions)
	}
	return t.log.catalogue.GrowTopic(ctx, t.topic.name, partitions)
}

// checkGrowth returns an error unless the topic can grow to that many partitions.
func (cat *Catalogue) checkGrowth(t *topic, partitions int32) error {
	if t.partitions == 0 {
		return errs.Newf(errs.Conflict, "%w: %s is not partitioned", ErrWrongKind, t.name)
	}
	if partitions <= t.partitions || partitions > cat.limits.Partitions {
		return errs.Newf(errs.Invalid, "%w: must be more than %d and at most %d", ErrPartitionCount, t.partitions,
			cat.limits.Partitions)
	}
	return nil
}

// Trim removes a partition's messages before an offset, for subscriptions too, and returns the
// first remaining offset. It returns ErrNoMessage when the offset is beyond the partition's end.
func (t *KafkaTopic) Trim(ctx context.Context, partition int32, before uint64) (uint64, error) {
	return onTopic(ctx, t.log.topics, t.topic.id, func() (uint64, error) {
		return t.log.engine.Trim(ctx, t.topic.id, partition, before)
	})
}

// Compacted reports whether cleanup.policy is compact only, so that age and size delete nothing.
func (t *KafkaTopic) Compacted() bool { return t.rules.kafka.compact && t.rules.kafka.keyed }

// PartitionStats returns the statistics of every partition.
func (t *KafkaTopic) PartitionStats(ctx context.Context) ([]engine.PartitionStats, error) {
	stats, err := t.log.topics.describe(ctx, t.topic)
	return stats.Partitions, err
}

// ActiveProducer is an idempotent producer in the table of a partition.
type ActiveProducer struct {
	ID           int64
	Epoch        int16
	LastSequence int32
	LastTime     int64 // time of its last batch, epoch milliseconds
}

// Producers returns the idempotent producers of a partition in the order of their ids.
func (t *KafkaTopic) Producers(ctx context.Context, partition int32, ids ProducerIDs) ([]ActiveProducer, error) {
	table, err := t.producerTable(ctx, partition, ids)
	if err != nil {
		return nil, err
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	all := make([]ActiveProducer, 0, len(table.producers))
	for id, s := range table.producers {
		if now()-s.at > producerRetention.Milliseconds() {
			continue // expired; evictLocked has not removed it yet
		}
		p := ActiveProducer{ID: id, Epoch: s.epoch, LastSequence: -1, LastTime: s.at}
		if n := len(s.batches); n > 0 {
			p.LastSequence = s.batches[n-1].last
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b ActiveProducer) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}
