// Package fairshare divides a limited resource fairly among the organizations that use it, within an
// organization among its principals, and within a principal among its connections: concurrent requests,
// the memory of their bodies, and the permits of costly work. A caller with many calls delays mainly its
// own calls.
//
// It owns the order in which waiting calls are served and the largest share of one caller. It does
// not know what the units are: web counts requests and bytes, kafkaapi bytes, workpool permits,
// unpacking bytes of decompressed batches.
//
// Locks:
//
//	Semaphore.mu  all mutable fields of a Semaphore, its organizations, principals, connections
//	              and waiters
//
// The lock is a leaf. The channel of a waiter is closed exactly once, with Semaphore.mu held: when
// the waiter gets its units. The sum of all held units is Semaphore.used, and it never exceeds
// Semaphore.capacity. After each method no waiter can be served with the units that are free.
package fairshare
