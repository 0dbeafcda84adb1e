package replicated

import "sync/atomic"

// maxUnacknowledged is the number of unacknowledged bytes from which on the logs of a member are crowded.
// Each byte in flight is in about ten buffers of the members: of the commit batch, of connections and routes,
// of NATS's queues and of its Raft logs. A log that takes 100 MB/s with a latency of 80 ms has this much in
// flight.
const maxUnacknowledged = 8 << 20

// Unacknowledged counts the bytes that the owners of a member have sent to their logs and that the logs have
// not acknowledged. All shards of a member share one.
//
// It limits the memory of a member. A shard with nothing in flight may always append, so no shard waits for
// another one, whose log may be slow or without a leader. Only a shard that has a commit batch in flight
// waits for that one while the logs are crowded. So the bytes in flight are at most maxUnacknowledged and one
// commit batch for each shard.
type Unacknowledged struct{ bytes atomic.Int64 }

// crowded reports whether a shard with a commit batch in flight should not append another one.
func (u *Unacknowledged) crowded() bool { return u.bytes.Load() >= maxUnacknowledged }
