package engine

import "context"

// Statistics reports how topics are used. Its calls are cheap enough to be made every
// few seconds.
type Statistics interface {
	// Usage calls visit once for every topic that is in use or stores something, in no
	// particular order. It loads no topic, so its cost grows with the number of topics in
	// use; of an idle topic it reports the usage at the time when the topic became idle.
	// Topics that were stored before the engine was opened are scanned in the background,
	// starting with the first call of Usage or Totals.
	Usage(ctx context.Context, visit func(Usage)) error
	// UsageOf is Usage for some topics: it calls visit for those of ids that are in memory or
	// whose usage is remembered. Its cost grows with the number of ids.
	UsageOf(ctx context.Context, ids []TopicID, visit func(Usage)) error
	// Totals returns the sums over all topics from counters in memory. Topics that were
	// stored before the engine was opened are added in the background, starting with the
	// first call of Usage or Totals.
	Totals() Totals
	// DamagedMessages returns how many messages were found damaged since the engine was
	// opened, and how often a consumer acknowledged such a message to skip it.
	DamagedMessages() (found, skipped int64)
	// Disk returns how much disk space the store uses and how much is available.
	Disk() Disk
	// OnDeadLetter sets the function that is called, once the move is durable, with the
	// topic of every message that was moved to a dead letter topic. There is one such
	// function; it must be fast.
	OnDeadLetter(count func(TopicID))
}

// Usage is the usage of one topic, over all its partitions and subscriptions.
type Usage struct {
	Topic         TopicID
	Stored        int64 // bytes
	Subscriptions int
	Backlog       uint64 // unacknowledged messages, summed over the subscriptions
	Leased        uint64 // delivered and not settled
	Oldest        int64  // publish time of the oldest message in a backlog, epoch milliseconds; 0 for none
}

// Totals are sums over all topics of a store.
type Totals struct {
	Stored        int64 // bytes
	Subscriptions int64
}

// Disk is the disk usage of a store in bytes. An unknown value is -1.
type Disk struct {
	Used      int64 // by the store's files
	Available int64 // on the file system
	Loaded    int   // topics in memory
}

// ObserveOldest updates Oldest with the publish time of a message in the backlog.
func (f *Usage) ObserveOldest(publish int64) {
	if f.Oldest == 0 || publish < f.Oldest {
		f.Oldest = publish
	}
}
