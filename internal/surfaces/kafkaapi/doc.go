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
//
//	semaphore               bounds
//	conn.frameMemory        bytes of request frames of one connection.
//	Server.frameMemory      bytes of request frames of all connections.
//	Server.preAuthMemory    bytes of request frames before authentication, instead of both above.
//	Server.decodedMemory    bytes of decoded requests.
//	Server.fetchLimiter     fetches that read at a time.
//	Server.describeLimiter  responses of describe APIs that are built at a time.
//	Server.responseMemory   bytes of responses.
//
// Server.mu and decisions.mu are never held together. The semaphores are acquired in the order of
// the list, and each is optional: a goroutine that holds one waits only for those below it, so that they
// cannot deadlock.
//
// # Ownership
//
// conn.auth belongs to the reader; a response keeps the session of its request. conn.fetchSession
// belongs to the writer. Only the reader adds to conn.queuedResponses.
package kafkaapi
