package kafkaapi

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// A share session stores which partitions a member of a share group fetches from this server, and which records it has
// on lease. A connection has at most one session, which ends with the connection, when the member leaves the group, or
// when the member opens another one. Its leases are released then.

// Limits of share sessions (docs/spec/stream.md#limits).
const (
	maxShareSessions          = 2000 // per server
	maxShareSessionsOfOne     = 500  // per principal
	maxShareSessionPartitions = 1000
	maxAcquired               = 2000     // records of one partition that a session has on lease
	maxAcquiredInSession      = 10_000   // records that a session has on lease
	maxShareBytes             = 64 << 20 // of all sessions together
	maxShareBytesOfOne        = maxShareBytes / 4
	sharePartitionCost        = 256 // memory of a partition in a session
	acquiredCost              = 96  // memory of a record on lease
)

var (
	errShareSession = errors.New("share session is unknown on this connection; start a new one")
	errShareEpoch   = errors.New("share session epoch is not the next one; start a new session")
	errShareLimit   = errors.New("server or account has reached its limit of share sessions; try again later")
)

// shareKey identifies the session of a member of a share group.
type shareKey struct{ cluster, tenant, group, member, principal string }

func (c *call) shareKey(group, member string) shareKey {
	return shareKey{
		c.session.cluster.UID, c.session.namespace.Tenant, group, member, access.PrincipalID(c.session.principal),
	}
}

// sharePartition is a partition of a share session.
type sharePartition struct {
	id        [16]byte // of the topic
	partition int32
}

// shareLease is a record that a member has on lease.
type shareLease struct {
	delivery uint32
	until    time.Time
}

// shareSession is a share session. mu protects the fields below it; all others belong to the connection's writer.
type shareSession struct {
	key    shareKey
	shares *messaging.Shares
	epoch  int32 // of the next request
	order  []sharePartition
	lock   time.Duration // duration of the last leases
	// charged is the memory of the partitions that the server has counted; Server.mu protects it.
	charged int

	mu       sync.Mutex
	ended    bool
	acquired map[sharePartition]*acquiredRecords
	records  int // number of acquired records
}

// acquiredRecords are the records of a partition that a member has on lease, by offset.
type acquiredRecords struct {
	topic  *messaging.KafkaTopic
	leases map[uint64]shareLease
}

// shareSessions are the share sessions of a server. Server.mu protects them.
type shareSessions struct {
	byKey map[shareKey]*shareSession
	used  map[string]*shareUse // by principal
	bytes int
}

// shareUse is what the sessions of a principal use.
type shareUse struct{ sessions, bytes int }

func newShareSessions() shareSessions {
	return shareSessions{byKey: make(map[shareKey]*shareSession), used: make(map[string]*shareUse)}
}

// use returns what the sessions of a principal use.
func (s *shareSessions) use(principal string) *shareUse {
	if use := s.used[principal]; use != nil {
		return use
	}
	return &shareUse{}
}

// freeBytes returns how many bytes the sessions of a principal may use in addition.
func (s *shareSessions) freeBytes(principal string) int {
	return min(maxShareBytes-s.bytes, maxShareBytesOfOne-s.use(principal).bytes)
}

// add counts sessions and bytes of a principal; both may be negative.
func (s *shareSessions) add(principal string, sessions, bytes int) {
	use := s.use(principal)
	use.sessions += sessions
	use.bytes += bytes
	s.bytes += bytes
	if *use == (shareUse{}) {
		delete(s.used, principal)
	} else {
		s.used[principal] = use
	}
}

// openShareSession starts a session of a connection, and ends that of the connection before and that of the member.
func (c *conn) openShareSession(key shareKey, shares *messaging.Shares, parts []sharePartition) (*shareSession, error) {
	c.endShareSession()
	c.server.endSharesOf(key)
	s := &shareSession{
		key: key, shares: shares, epoch: 1, order: parts, lock: engine.DefaultLease,
		acquired: make(map[sharePartition]*acquiredRecords),
	}
	all := &c.server.shareSessions
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	cost := sharePartitionCost * len(parts)
	if len(parts) > maxShareSessionPartitions || len(all.byKey) >= maxShareSessions ||
		all.use(key.principal).sessions >= maxShareSessionsOfOne || cost > all.freeBytes(key.principal) ||
		all.byKey[key] != nil {
		return nil, errShareLimit
	}
	all.byKey[key] = s
	all.add(key.principal, 1, cost)
	s.charged = cost
	c.shareSession = s
	return s, nil
}

// endShareSession ends the session of a connection.
func (c *conn) endShareSession() {
	if c.shareSession != nil {
		c.server.endShareSession(c.shareSession)
		c.shareSession = nil
	}
}

// endSharesOf ends the session of a member, which may belong to another connection.
func (s *Server) endSharesOf(key shareKey) {
	s.mu.Lock()
	session := s.shareSessions.byKey[key]
	s.mu.Unlock()
	if session != nil {
		s.endShareSession(session)
	}
}

// shareReleaseTimeout bounds the time for releasing the leases of a session. Leases that are not released expire.
const shareReleaseTimeout = 5 * time.Second

// endShareSession releases the leases of a session. They count as deliveries.
func (s *Server) endShareSession(session *shareSession) {
	session.mu.Lock()
	if session.ended {
		session.mu.Unlock()
		return
	}
	session.ended = true
	acquired, records := session.acquired, session.records
	session.acquired, session.records = nil, 0
	session.mu.Unlock()
	s.mu.Lock()
	all := &s.shareSessions
	delete(all.byKey, session.key)
	all.add(session.key.principal, -1, -session.charged-acquiredCost*records)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, shareReleaseTimeout)
	defer cancel()
	for part, of := range acquired {
		released := make([]engine.Settlement, 0, len(of.leases))
		for offset, lease := range of.leases {
			released = append(released, of.settlement(part, offset, lease, engine.Release, 0))
		}
		// Without a subscription or a topic nothing is leased any more.
		_ = session.shares.Settle(ctx, of.topic, session.key.group, released)
	}
}

func (a *acquiredRecords) settlement(part sharePartition, offset uint64, lease shareLease, action engine.Action,
	delay time.Duration,
) engine.Settlement {
	return engine.Settlement{
		ID:     engine.MessageID{Topic: engine.TopicID(a.topic.ID()), Partition: part.partition, Entry: offset},
		Action: action, Delivery: lease.delivery, Delay: delay,
	}
}

// nextShareEpoch returns the session of a request, and moves it to the next epoch.
func (c *call) nextShareEpoch(group, member string, epoch int32) (*shareSession, error) {
	s := c.conn.shareSession
	if s == nil || s.key != c.shareKey(group, member) || s.hasEnded() {
		return nil, errShareSession
	}
	if epoch == sessionNone {
		return s, nil
	}
	if epoch != s.epoch {
		return nil, errShareEpoch
	}
	if s.epoch++; s.epoch == math.MaxInt32 {
		s.epoch = 1
	}
	return s, nil
}

func (s *shareSession) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// setSharePartitions replaces the partitions of a session; false over a limit.
func (s *Server) setSharePartitions(session *shareSession, parts []sharePartition) bool {
	if len(parts) > maxShareSessionPartitions {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shareSessions.byKey[session.key] == session { // it has not ended
		more := sharePartitionCost*len(parts) - session.charged
		if more > 0 && more > s.shareSessions.freeBytes(session.key.principal) {
			return false
		}
		s.shareSessions.add(session.key.principal, 0, more)
		session.charged += more
	}
	session.order = parts
	return true
}

// chargeAcquired counts n records on lease to a principal, or fewer if n is negative; false over a limit.
func (s *Server) chargeAcquired(principal string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && n*acquiredCost > s.shareSessions.freeBytes(principal) {
		return false
	}
	s.shareSessions.add(principal, 0, n*acquiredCost)
	return true
}

// mayAcquire returns how many records of a partition a session may lease in addition. It forgets leases that have
// expired.
func (s *Server) mayAcquire(session *shareSession, part sharePartition) int {
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.ended {
		return 0
	}
	s.mu.Lock()
	free := s.shareSessions.freeBytes(session.key.principal) / acquiredCost
	s.mu.Unlock()
	of := session.acquired[part]
	if of == nil {
		return min(maxAcquired, maxAcquiredInSession-session.records, free)
	}
	now, gone := time.Now(), 0
	for offset, lease := range of.leases {
		if !lease.until.After(now) {
			delete(of.leases, offset)
			gone++
		}
	}
	session.records -= gone
	s.chargeAcquired(session.key.principal, -gone)
	return min(maxAcquired-len(of.leases), maxAcquiredInSession-session.records, free)
}

// addAcquired stores new leases in a session; false if it has ended or the server's limit is reached.
func (s *Server) addAcquired(session *shareSession, part sharePartition, topic *messaging.KafkaTopic,
	got []engine.Delivery,
) bool {
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.ended || !s.chargeAcquired(session.key.principal, len(got)) {
		return false
	}
	of := session.acquired[part]
	if of == nil {
		of = &acquiredRecords{leases: make(map[uint64]shareLease)}
		session.acquired[part] = of
	}
	of.topic = topic
	before := len(of.leases)
	for i := range got {
		of.leases[got[i].ID.Entry] = shareLease{got[i].Redeliveries + 1, got[i].LeasedUntil}
	}
	added := len(of.leases) - before
	s.chargeAcquired(session.key.principal, added-len(got))
	session.records += added
	return true
}
