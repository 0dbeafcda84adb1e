package kafkaapi

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A fetch session (KIP-227) remembers what a client fetches, so that its next
// requests say only what changed and answers have only what is new. It lives with
// its connection, of which it is the only one, and belongs to the goroutine that
// makes answers.

// Bounds of sessions (docs/spec/stream.md#limits).
const (
	maxSessions          = 1000 // of a server's connections
	maxSessionPartitions = 10_000
	maxSessionBytes      = 64 << 20 // of all of them together
)

// sessionCost is the memory of a partition in a session, roughly.
func (k *wantedKey) sessionCost() int { return 256 + len(k.topic) }

// What epochs of a session mean that are no number of a request.
const (
	sessionNone    = -1 // no session is wanted, and one that is there ends
	sessionInitial = 0  // a new one is wanted
)

var (
	errSessionID    = errors.New("fetch session is not known; begin a new one")
	errSessionEpoch = errors.New("request is not the next one of its fetch session; begin a new one")
	errSessionTopic = errors.New("fetch session names topics in another way than its requests; begin a new one")
)

// topicKey is a topic as a request names it.
type topicKey struct {
	topic string
	id    [16]byte
}

type wantedKey struct {
	topicKey
	partition int32
}

// wantedPartition is what a client wants to read.
type wantedPartition struct {
	wantedKey
	offset      int64
	leaderEpoch int32
	maxBytes    int32

	// What the client was told last; only in a session.
	told       bool
	high, from int64
	forgotten  bool
}

// update takes over what a request says.
func (w *wantedPartition) update(asked *kmsg.FetchRequestTopicPartition) {
	w.offset, w.leaderEpoch, w.maxBytes = asked.FetchOffset, asked.CurrentLeaderEpoch, asked.PartitionMaxBytes
}

// news says whether a client has to be told of a partition.
func (w *wantedPartition) news(part *fetchResponsePartition) bool {
	return !w.told || part.errorCode != codeOK || part.batches.size > 0 || part.highWatermark != w.high ||
		part.logStart != w.from
}

type fetchSession struct {
	id, epoch int32 // epoch is that of the next request
	byID      bool  // topics are named by id
	order     []*wantedPartition
	known     map[wantedKey]*wantedPartition
	bytes     int // that its partitions take
	charged   int // of these, that are counted in the server
}

// plan finds out what a request is about: its session, if it has one, and what to
// read.
func (f *fetching) plan() error {
	conn, epoch := f.c.conn, f.request.SessionEpoch
	s := conn.fetches
	if epoch == sessionNone || epoch == sessionInitial {
		if s != nil && (epoch == sessionInitial || f.request.SessionID == s.id) {
			conn.endFetchSession()
		}
		f.wanted = wantedOf(f.request)
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
	f.wanted, f.onlyNews = s.order, true
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

// wantedOf lists what a request names, in its order. Of a partition that it names several
// times the last one counts, as it does in Kafka.
func wantedOf(request *kmsg.FetchRequest) (all []*wantedPartition) {
	known := make(map[wantedKey]*wantedPartition)
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			key := wantedKey{topicKey{topic.Topic, topic.TopicID}, topic.Partitions[j].Partition}
			w := known[key]
			if w == nil {
				w = &wantedPartition{wantedKey: key}
				known[key] = w
				all = append(all, w)
			}
			w.update(&topic.Partitions[j])
		}
	}
	return all
}

// told remembers what the answer says, and begins the session that the client
// asked for. What gave records is read last the next time, so that all get their
// turn.
func (f *fetching) told() {
	if f.request.SessionEpoch == sessionInitial && f.c.version >= 7 {
		f.c.conn.beginFetchSession(f)
	}
	s := f.c.conn.fetches
	if s == nil || f.response.sessionID == 0 {
		return
	}
	full := make(map[*wantedPartition]bool)
	for i := range f.response.topics {
		row := &f.response.topics[i]
		for j := range row.partitions {
			part := &row.partitions[j]
			w := s.known[wantedKey{row.topicKey, part.index}]
			if w == nil {
				continue
			}
			w.told, w.high, w.from = part.errorCode == codeOK, part.highWatermark, part.logStart
			if part.batches.size > 0 {
				full[w] = true
			}
		}
	}
	if len(full) == 0 {
		return
	}
	next := make([]*wantedPartition, 0, len(s.order))
	for _, given := range []bool{false, true} {
		for _, w := range s.order {
			if full[w] == given {
				next = append(next, w)
			}
		}
	}
	s.order = next
}

// beginFetchSession makes the session of a first request, if there is room for it;
// else the client is told of none and says everything each time.
func (c *conn) beginFetchSession(f *fetching) {
	s := &fetchSession{
		id: 1 + rand.Int32N(math.MaxInt32-1), epoch: 1, byID: f.c.version >= 13,
		known: make(map[wantedKey]*wantedPartition, len(f.wanted)),
	}
	for _, w := range f.wanted {
		s.insert(w)
	}
	if len(s.order) == 0 || len(s.order) > maxSessionPartitions || !c.server.admitSession(s) {
		return
	}
	c.fetches, f.response.sessionID = s, s.id
}

// add takes over what a request of the session names; false when it is too much.
func (s *fetchSession) add(request *kmsg.FetchRequest) bool {
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			key := wantedKey{topicKey{topic.Topic, topic.TopicID}, topic.Partitions[j].Partition}
			w := s.known[key]
			if w == nil {
				if len(s.order) >= maxSessionPartitions {
					return false
				}
				w = &wantedPartition{wantedKey: key}
				s.insert(w)
			}
			w.update(&topic.Partitions[j])
		}
	}
	return true
}

func (s *fetchSession) insert(w *wantedPartition) {
	s.known[w.wantedKey] = w
	s.order = append(s.order, w)
	s.bytes += w.sessionCost()
}

// forget takes out what a request says is not wanted any more.
func (s *fetchSession) forget(request *kmsg.FetchRequest) {
	gone := false
	for i := range request.ForgottenTopics {
		topic := &request.ForgottenTopics[i]
		for _, index := range topic.Partitions {
			key := wantedKey{topicKey{topic.Topic, topic.TopicID}, index}
			if w := s.known[key]; w != nil {
				w.forgotten, gone = true, true
				delete(s.known, key)
				s.bytes -= key.sessionCost()
			}
		}
	}
	if !gone {
		return
	}
	kept := make([]*wantedPartition, 0, len(s.known))
	for _, w := range s.order {
		if !w.forgotten {
			kept = append(kept, w)
		}
	}
	s.order = kept
}

// endFetchSession forgets the session of a connection.
func (c *conn) endFetchSession() {
	if c.fetches != nil {
		c.server.endSession(c.fetches)
		c.fetches = nil
	}
}

// admitSession counts one more session, unless there are too many.
func (s *Server) admitSession(f *fetchSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetchSessions >= maxSessions || s.sessionBytes+f.bytes > maxSessionBytes {
		return false
	}
	s.fetchSessions++
	s.sessionBytes += f.bytes
	f.charged = f.bytes
	return true
}

// chargeSession counts what a session has grown by, unless it is too much.
func (s *Server) chargeSession(f *fetchSession) bool {
	more := f.bytes - f.charged
	if more == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if more > 0 && s.sessionBytes+more > maxSessionBytes {
		return false
	}
	s.sessionBytes += more
	f.charged += more
	return true
}

func (s *Server) endSession(f *fetchSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetchSessions--
	s.sessionBytes -= f.charged
}
