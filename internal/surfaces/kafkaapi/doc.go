// Package kafkaapi serves the stream protocol: Kafka clients on the topics of a
// cluster (docs/spec/stream.md).
//
// It owns listeners, frames, authentication, the table of APIs and the bytes of
// their requests and answers. What happens to topics is messaging's, what
// happens to consumer groups is groups', the layout of record batches is
// records'. One file for each API, named after it.
//
// # A connection
//
//	socket ── read ──► take ──► queue of answers (64) ── write ──► socket
//
// Two goroutines. The reader takes requests in order: it decodes one, does what
// must happen in the order of arrival (placing a batch in the log), and queues a
// function that makes the answer. The writer calls these functions in turn and
// sends what they return; so answers keep the order of requests, and one that has
// to wait holds back those behind it. The reader of a connection with a full
// queue does not read on: that, and the bytes that frames may hold, is what bounds
// memory. Nothing that was read is dropped. What is answered in a moment (a heartbeat,
// a commit) while nothing is queued the reader sends itself.
//
// Server.mu guards the connections of a server. A conn's session belongs to its
// reader; answers get it handed over.
package kafkaapi
