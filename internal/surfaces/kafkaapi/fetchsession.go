package kafkaapi

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A fetch session (KIP-227) stores which partitions a client fetches, so that its next requests
// contain only changes, and responses only partitions with changes. A connection has at most one
// session, which ends with the connection. The session belongs to the connection's writer.

// Limits of sessions (docs/spec/stream.md#limits).
const (
	maxSessions          = 1000 // per server
	maxSessionPartitions = 10_000
	maxSessionBytes      = 64 << 20 // of all sessions together
)

// sessionCost estimates the memory of a partition in a session.
func (k *partitionKey) sessionCost() int { return 256 + len(k.topic) }

// Session epochs with a special meaning.
const (
	sessionNone    = -1 // use no session, and end the current one
	sessionInitial = 0  // start a new session
)

var (
	errSessionID    = errors.New("fetch session is unknown; start a new one")
	errSessionEpoch = errors.New("fetch session epoch is not the next one; start a new session")
	errSessionTopic = errors.New("fetch session mixes topic names and topic ids; start a new one")
)

// topicKey is a topic as a request names it.
type topicKey struct {
	topic string
	id    [16]byte
}

type partitionKey struct {
	topicKey
	partition int32
}

// fetchPartition is a partition that a client fetches.
type fetchPartition struct {
	partitionKey
	offset      int64
	leaderEpoch int32
	lastEpoch   int32 // leader epoch of the last fetched record; negative when unknown
	maxBytes    int32

	// State that was last sent to the client; only in a session.
	reported                                bool
	reportedHighWatermark, reportedLogStart int64
	forgotten                               bool
}

// update sets the fields of a request.
func (w *fetchPartition) update(requested *kmsg.FetchRequestTopicPartition) {
	w.offset, w.maxBytes = requested.FetchOffset, requested.PartitionMaxBytes
	w.leaderEpoch, w.lastEpoch = requested.CurrentLeaderEpoch, requested.LastFetchedEpoch
}

// changed reports whether a partition must be in the response of the session.
func (w *fetchPartition) changed(part *fetchResponsePartition) bool {
	return !w.reported || part.errorCode != codeOK || part.batches.size > 0 || part.diverges() ||
		part.highWatermark != w.reportedHighWatermark ||
		part.logStart != w.reportedLogStart
}

type fetchSession struct {
	id, epoch    int32 // epoch is the epoch of the next request
	byID         bool  // topics are identified by id
	order        []*fetchPartition
	partitions   map[partitionKey]*fetchPartition
	bytes        int // memory of its partitions
	chargedBytes int // part of bytes that the server has counted
}

// plan determines the session of a request, if it has one, and the partitions to read.
func (f *fetchCall) plan() error {
	conn, epoch := f.c.conn, f.request.SessionEpoch
	s := conn.fetchSession
	if epoch == sessionNone || epoch == sessionInitial {
		if s != nil && (epoch == sessionInitial || f.request.SessionID == s.id) {
			conn.endFetchSession()
		}
		f.partitions = requestedPartitions(f.request)
		return nil
	}
	switch {
	case s == nil || f.request.SessionID != s.id:
		return errSessionID
	case epoch != s.epoch:
		return errSessionEpoch
	case s.byID != (f.c.version >= 13):
		return errSessionTopic
	}
	s.forget(f.request)
	if !s.add(f.request) || !conn.server.chargeSession(s) {
		conn.endFetchSession()
		return errSessionID
	}
	f.partitions, f.incremental = s.order, true
	if len(s.order) == 0 {
		conn.endFetchSession()
		return nil
	}
	s.epoch++
	if s.epoch == math.MaxInt32 {
		s.epoch = 1
	}
	f.response.sessionID = s.id
	return nil
}

// requestedPartitions lists the partitions of a request in order. If a partition occurs several times, the
// last occurrence counts, as in Kafka.
func requestedPartitions(request *kmsg.FetchRequest) (all []*fetchPartition) {
	known := make(map[partitionKey]*fetchPartition)
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			key := partitionKey{topicKey{topic.Topic, topic.TopicID}, topic.Partitions[j].Partition}
			w := known[key]
			if w == nil {
				w = &fetchPartition{partitionKey: key}
				known[key] = w
				all = append(all, w)
			}
			w.update(&topic.Partitions[j])
		}
	}
	return all
}

// updateSession stores in the session what the response contains, and starts a session if the client
// requested one. Partitions with records move to the end, so that all partitions get their turn.
func (f *fetchCall) updateSession() {
	if f.request.SessionEpoch == sessionInitial && f.c.version >= 7 {
		f.c.conn.beginFetchSession(f)
	}
	s := f.c.conn.fetchSession
	if s == nil || f.response.sessionID == 0 {
		return
	}
	full := make(map[*fetchPartition]bool)
	for i := range f.response.topics {
		row := &f.response.topics[i]
		for j := range row.partitions {
			part := &row.partitions[j]
			w := s.partitions[partitionKey{row.topicKey, part.index}]
			if w == nil {
				continue
			}
			w.reported, w.reportedHighWatermark, w.reportedLogStart = part.errorCode == codeOK,
				part.highWatermark, part.logStart
			if part.batches.size > 0 {
				full[w] = true
			}
		}
	}
	if len(full) == 0 {
		return
	}
	next := make([]*fetchPartition, 0, len(s.order))
	for _, given := range []bool{false, true} {
		for _, w := range s.order {
			if full[w] == given {
				next = append(next, w)
			}
		}
	}
	s.order = next
}

// beginFetchSession creates the session of a first request if the limits allow it. Otherwise the
// response has session id 0, and the client sends full requests.
func (c *conn) beginFetchSession(f *fetchCall) {
	s := &fetchSession{
		id: 1 + rand.Int32N(math.MaxInt32-1), epoch: 1, byID: f.c.version >= 13,
		partitions: make(map[partitionKey]*fetchPartition, len(f.partitions)),
	}
	for _, w := range f.partitions {
		s.insert(w)
	}
	if len(s.order) == 0 || len(s.order) > maxSessionPartitions || !c.server.admitSession(s) {
		return
	}
	c.fetchSession, f.response.sessionID = s, s.id
}

// add adds the partitions of a request to the session; false over the limit.
func (s *fetchSession) add(request *kmsg.FetchRequest) bool {
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			key := partitionKey{topicKey{topic.Topic, topic.TopicID}, topic.Partitions[j].Partition}
			w := s.partitions[key]
			if w == nil {
				if len(s.order) >= maxSessionPartitions {
					return false
				}
				w = &fetchPartition{partitionKey: key}
				s.insert(w)
			}
			w.update(&topic.Partitions[j])
		}
	}
	return true
}

func (s *fetchSession) insert(w *fetchPartition) {
	s.partitions[w.partitionKey] = w
	s.order = append(s.order, w)
	s.bytes += w.sessionCost()
}

// forget removes the partitions that a request lists as forgotten.
func (s *fetchSession) forget(request *kmsg.FetchRequest) {
	gone := false
	for i := range request.ForgottenTopics {
		topic := &request.ForgottenTopics[i]
		for _, index := range topic.Partitions {
			key := partitionKey{topicKey{topic.Topic, topic.TopicID}, index}
			if w := s.partitions[key]; w != nil {
				w.forgotten, gone = true, true
				delete(s.partitions, key)
				s.bytes -= key.sessionCost()
			}
		}
	}
	if !gone {
		return
	}
	kept := make([]*fetchPartition, 0, len(s.partitions))
	for _, w := range s.order {
		if !w.forgotten {
			kept = append(kept, w)
		}
	}
	s.order = kept
}

// endFetchSession ends the session of a connection.
func (c *conn) endFetchSession() {
	if c.fetchSession != nil {
		c.server.endSession(c.fetchSession)
		c.fetchSession = nil
	}
}

// admitSession counts a new session; false over the limit.
func (s *Server) admitSession(f *fetchSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetchSessions >= maxSessions || s.sessionBytes+f.bytes > maxSessionBytes {
		return false
	}
	s.fetchSessions++
	s.sessionBytes += f.bytes
	f.chargedBytes = f.bytes
	return true
}

// chargeSession counts the growth of a session; false over the limit.
func (s *Server) chargeSession(f *fetchSession) bool {
	more := f.bytes - f.chargedBytes
	if more == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if more > 0 && s.sessionBytes+more > maxSessionBytes {
		return false
	}
	s.sessionBytes += more
	f.chargedBytes += more
	return true
}

func (s *Server) endSession(f *fetchSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetchSessions--
	s.sessionBytes -= f.chargedBytes
}
