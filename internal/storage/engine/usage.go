package engine

import "context"

// Statistics tell an operator how topics are used, cheap enough to be asked for every
// few seconds.
type Statistics interface {
	// Usage calls visit once for every topic that is in use or stores
	// something, in no particular order. It loads no topic: its cost grows with
	// the topics in use, and those that nobody uses are remembered as they were
	// when they were last used. What an engine stored before it was opened is
	// looked through in the background, from the first call on.
	Usage(ctx context.Context, visit func(Usage)) error
	// Totals returns what all topics have together, for next to nothing. What an
	// engine stored before it was opened is added in the background, from the
	// first call on.
	Totals() Totals
	// DamagedMessages returns how many messages were found damaged, and how often
	// one of them was acknowledged all the same, since the engine was opened.
	DamagedMessages() (found, skipped int64)
	// Disk returns what the store takes and what is left.
	Disk() Disk
	// OnDeadLetter has count called with the topic of every message that was
	// moved to a dead letter topic from now on, once that is durable. There is
	// one such function; it must be quick.
	OnDeadLetter(count func(TopicID))
}

// Usage is how one topic is used, over all its partitions and
// subscriptions.
type Usage struct {
	Topic         TopicID
	Stored        int64 // bytes
	Subscriptions int
	Backlog       uint64 // messages not acknowledged, added up over the subscriptions
	Leased        uint64 // handed out and not settled
	Oldest        int64  // publish time of the oldest message in a backlog, epoch milliseconds; 0 for none
}

// Totals are what all topics of a store have together.
type Totals struct {
	Stored        int64 // bytes
	Subscriptions int64
}

// Disk is the room of a store in bytes. What cannot be told is -1.
type Disk struct {
	Used      int64 // by the store's files
	Available int64 // on the file system
	Loaded    int   // topics in memory
}

// Age notes a message of a backlog that was published then.
func (f *Usage) Age(publish int64) {
	if f.Oldest == 0 || publish < f.Oldest {
		f.Oldest = publish
	}
}
