// Package kafkaapi serves the Kafka protocol on the topics of a cluster (docs/spec/stream.md).
//
// It owns listeners, frames, authentication, the table of APIs (allAPIs), and the encoding of
// requests and responses. Topics belong to package messaging, consumer groups to package groups,
// and the layout of record batches to package records.
//
// # A connection
//
//	socket ── read ──► beginRequest ──► queue of responses (64) ── write ──► socket
//
// A connection has two goroutines. The reader decodes requests in order. It does the part of a
// request that must happen in the order of arrival (appending a batch to the log), and queues a
// function that builds the response. The writer calls these functions one after the other and sends
// the results, so responses keep the order of the requests, and a response that has to wait delays
// those behind it. While nothing is queued, the reader itself sends responses that take only a
// moment (a heartbeat, a commit). The reader stops reading while the queue is full. That, and the
// semaphores below, bound the memory; a request that was read is never dropped.
//
// # Locks and semaphores
//
//	lock                    protects
//	Server.mu               listeners, connections, the list of unauthenticated connections, the
//	                        number and memory of fetch sessions. Not held while waiting.
//	decisions.mu            the cached permissions of a session.
//	room.mu                 the claims of large frames.
//
// No two of them are held together.
//
//	semaphore               bounds
//	Server.preAuthMemory    bytes of a request before authentication. Its holder waits for the client only.
//	room.claims             announced bytes of the large frames of a principal that are being received.
//	room.main               bytes of requests and responses.
//	room.outsiders          bytes of requests of principals without a permission, instead of main.
//	room.responses          bytes of responses that found no room in main.
//	room.spare              bytes of small requests and responses that found no room. Nobody waits for it.
//	Server.fetchLimiter     fetches that read at a time.
//	Server.describeLimiter  responses of describe APIs that are built at a time.
//
// The semaphores are acquired in the order of the list, and each is optional: a goroutine that holds one waits
// only for those below it, so that they cannot deadlock. There is one exception, a large frame that waits
// for more of main while it holds some; see room. A goroutine with a permit of a limiter waits for no
// semaphore at all: if there is no room for its response, it drops the response, releases the permit, waits
// for room, and builds the response again.
//
// # Ownership
//
// conn.auth belongs to the reader; a response keeps the session of its request. conn.fetchSession
// belongs to the writer. Only the reader adds to conn.queuedResponses.
package kafkaapi
