package groups

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"freshet/internal/base/names"
)

// phase is the state of a group with the classic protocol.
type phase uint8

const (
	empty      phase = iota // no members
	preparing               // waiting for members to join
	completing              // waiting for the leader's assignments
	stable                  // every member has an assignment
)

// String returns Kafka's name of the state.
func (p phase) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[p]
}

// group is the in-memory state of a group.
type group struct {
	key   Key
	shard *shard

	mu      sync.Mutex
	removed bool // no longer in the shard's map
	phase   phase
	// number is the generation id, or the group epoch of the consumer protocol. It increases when
	// all members have joined.
	number          int32
	protocolType    string
	protocol        string // chosen for the generation
	leader          string // a member's id
	members         map[string]*member
	static          map[string]string        // instance id → member id
	pending         map[string]pendingMember // by member id, for ids that were returned with ErrMemberIDRequired
	protocolSupport map[string]int           // protocol name → number of members that support it
	joinCount       uint64                   // number of members that ever joined, to order them
	memberBytes     int                      // size of the protocols and topics of all members
	reading         reading                  // topics of the members with the classic protocol
	committing      map[names.Topic]int      // topics that commits in progress add, with the number of these commits

	// Bytes that the group counts towards quotas; see usage.go.
	charges         map[string]int // account → bytes
	payer           string         // account that pays for the group itself
	uncharged       bool           // the group has left the memory and counts nothing
	assignmentBytes int
	assignmentPayer string // account of the leader that sent the assignments

	deadline time.Time // end of preparing or completing
	// inInitialDelay is set during the first rebalance of an empty group: deadline moves while more
	// members join, up to initialDelayEnd.
	inInitialDelay   bool
	initialDelayEnd  time.Time
	memberJoined     bool // a member joined since the deadline was set
	storing          bool // the leader's assignments are being written to the journal
	storeEmpty       bool // the last member left, and unlock must store that
	writesInProgress int  // writes to the journal in progress

	timer *time.Timer // nil while no deadline exists

	// consumers is set in a group with the consumer protocol. Of the fields from phase to timer such
	// a group uses only number, writes and timer.
	consumers *consumers
}

// member is a member of a group with the classic protocol.
type member struct {
	id, instance, client, host       string
	joinOrder                        uint64 // order of joining
	sessionTimeout, rebalanceTimeout time.Duration
	protocols                        []Protocol
	assignment                       []byte
	// assigned is what the member had when the group changed from the consumer protocol, until the next generation.
	assigned    []Partition
	synced      bool
	expires     time.Time // end of its session; ignored while the member waits for a response
	pendingJoin *waiter[JoinResult]
	pendingSync *waiter[SyncResult]
	owner       owner
}

// pendingMember is a member id that was returned to a client, which has to join with it.
type pendingMember struct {
	expires   time.Time
	principal string // owns the member id and pays for it
}

func newGroup(s *shard, key Key) *group {
	return &group{
		key: key, shard: s,
		members: make(map[string]*member), static: make(map[string]string),
		pending: make(map[string]pendingMember), protocolSupport: make(map[string]int),
		reading: newReading(), committing: make(map[names.Topic]int),
	}
}

// restoreLocked restores a stored group. Its members have a full session timeout to send a
// heartbeat.
func (g *group) restoreLocked(stored *generation) {
	g.number, g.protocolType, g.protocol, g.leader = stored.number, stored.protocolType, stored.protocol, stored.leader
	if len(stored.members) == 0 {
		return
	}
	g.phase = stable
	now, assignments := time.Now(), 0
	for i := range stored.members {
		s := &stored.members[i]
		m := &member{
			id: s.id, instance: s.instance, client: s.client, host: s.host,
			sessionTimeout:   time.Duration(s.sessionMillis) * time.Millisecond,
			rebalanceTimeout: time.Duration(s.rebalanceMillis) * time.Millisecond,
			protocols:        []Protocol{{Name: stored.protocol, Metadata: s.metadata}},
			assignment:       s.assignment, synced: true, owner: s.owner,
		}
		if m.owner.principal == "" {
			m.owner = earlierOwner(stored.protocolType, s.metadata)
		}
		m.expires = now.Add(m.sessionTimeout)
		g.addLocked(m)
		assignments += len(m.assignment)
	}
	if leader := g.members[g.leader]; leader != nil {
		g.chargeAssignmentsLocked(leader.owner.principal, assignments)
	}
	g.setTimerLocked()
}

// toStoredLocked returns the stored form of the group.
func (g *group) toStoredLocked() *generation {
	stored := &generation{number: g.number, protocolType: g.protocolType, protocol: g.protocol, leader: g.leader}
	for _, m := range g.inOrderLocked() {
		stored.members = append(stored.members, storedMember{
			id: m.id, instance: m.instance, client: m.client, host: m.host,
			sessionMillis: m.sessionTimeout.Milliseconds(), rebalanceMillis: m.rebalanceTimeout.Milliseconds(),
			metadata: m.metadata(g.protocol), assignment: m.assignment, owner: m.owner,
		})
	}
	return stored
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// inOrderLocked returns the members in the order in which they joined.
func (g *group) inOrderLocked() []*member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *member) int {
		if a.joinOrder < b.joinOrder {
			return -1
		}
		return 1
	})
}

func (g *group) addLocked(m *member) {
	g.joinCount++
	m.joinOrder = g.joinCount
	g.members[m.id] = m
	if m.instance != "" {
		g.static[m.instance] = m.id
	}
	g.countProtocolsLocked(m, 1)
	g.leader = cmp.Or(g.leader, m.id)
}

// removeLocked removes a member. Calls that wait on behalf of the member return why.
func (g *group) removeLocked(m *member, why error) {
	delete(g.members, m.id)
	if m.instance != "" && g.static[m.instance] == m.id {
		delete(g.static, m.instance)
	}
	g.countProtocolsLocked(m, -1)
	if g.leader == m.id {
		g.leader = ""
		if rest := g.inOrderLocked(); len(rest) > 0 {
			g.leader = rest[0].id
		}
	}
	m.respondJoin(JoinResult{MemberID: m.id}, why)
	m.respondSync(SyncResult{}, why)
}

// countProtocolsLocked adds (by = 1) or removes (by = -1) the protocols of a member in the group's
// counters.
func (g *group) countProtocolsLocked(m *member, by int) {
	n := by * (size(m.protocols) + m.owner.size())
	g.memberBytes += n
	if !g.uncharged {
		g.shard.c.memberBytes.Add(int64(n))
	}
	g.reading.add(&m.owner, by)
	g.chargeLocked(m.owner.principal, by*m.bytes())
	for i, p := range m.protocols {
		if slices.ContainsFunc(m.protocols[:i], func(q Protocol) bool { return q.Name == p.Name }) {
			continue // listed twice
		}
		if g.protocolSupport[p.Name] += by; g.protocolSupport[p.Name] == 0 {
			delete(g.protocolSupport, p.Name)
		}
	}
}

// unlock releases the lock of a group. If the last member has left, unlock stores that first. It
// removes an unused group from memory.
func (g *group) unlock() {
	if g.storeEmpty {
		g.storeEmpty = false
		if err := g.writeLocked(g.emptyRecordLocked()); err != nil && !errors.Is(err, ErrClosed) {
			g.shard.c.log.LogAttrs(g.shard.c.ctx, slog.LevelWarn,
				"storing the end of a consumer group's generation failed; after a restart the coordinator waits "+
					"for its members again",
				slog.String("group", g.key.Group), slog.String("tenant", g.key.Tenant), slog.Any("error", err))
		}
	}
	g.setTimerLocked()
	idle := !g.occupiedLocked() && len(g.pending) == 0 && g.writesInProgress == 0
	g.removed = g.removed || idle
	if idle {
		g.releaseChargesLocked()
	}
	g.mu.Unlock()
	if idle {
		g.shard.remove(g)
	}
}

// writeLocked releases the group's mutex while it writes records to the journal. The group stays in
// memory during that time; everything else may have changed on return.
func (g *group) writeLocked(decide func(*state) ([][]byte, error)) error {
	g.writesInProgress++
	g.setTimerLocked()
	g.mu.Unlock()
	err := g.shard.update(decide)
	g.mu.Lock()
	g.writesInProgress--
	return err
}

// storeLocked stores the group unless a later generation, of either protocol, is already stored. It
// releases the mutex during the write.
func (g *group) storeLocked() error {
	number := g.number
	stored := g.toStoredLocked()
	w := generationRecord(g.key, stored)
	payer := g.payer
	return g.writeLocked(func(s *state) ([][]byte, error) {
		if item, ok := s.groups.Get(g.key.path()); ok && item.stored.number > number {
			return nil, nil
		}
		return s.appendPayer([][]byte{w.Writer}, g.key, payer), nil
	})
}

// emptyRecordLocked returns the decision to store that the last member has left, unless a later
// generation is stored.
func (g *group) emptyRecordLocked() func(*state) ([][]byte, error) {
	number := g.number
	w := newRecord(recordEmpty, g.key)
	w.Varint(time.Now().UnixMilli())
	w.Varint(int64(number))
	return func(s *state) ([][]byte, error) {
		item, ok := s.groups.Get(g.key.path())
		if !ok || !item.occupied() || item.stored.number >= number {
			return nil, nil
		}
		return [][]byte{w.Writer}, nil
	}
}

// closeLocked ends all calls that wait for the group, with ErrClosed.
func (g *group) closeLocked() {
	g.removed = true
	g.releaseChargesLocked()
	if g.timer != nil {
		g.timer.Stop()
	}
	for _, m := range g.members {
		m.respondJoin(JoinResult{MemberID: m.id}, ErrClosed)
		m.respondSync(SyncResult{}, ErrClosed)
	}
}

// waiter is a call that waits for a response. It gets at most one.
type waiter[T any] struct {
	memberID string // id of the member on whose behalf the call waits
	response chan response[T]
}

type response[T any] struct {
	value T
	err   error
}

func newWaiter[T any](member string) *waiter[T] {
	return &waiter[T]{memberID: member, response: make(chan response[T], 1)}
}

// wait returns the response. When ctx ends first it calls left and returns ctx's error.
func (w *waiter[T]) wait(ctx context.Context, left func()) (T, error) {
	select {
	case a := <-w.response:
		return a.value, a.err
	case <-ctx.Done():
		left()
		var none T
		return none, ctx.Err()
	}
}

func (m *member) respondJoin(result JoinResult, err error) {
	if m.pendingJoin != nil {
		m.pendingJoin.response <- response[JoinResult]{result, err}
		m.pendingJoin = nil
		m.expires = time.Now().Add(m.sessionTimeout)
	}
}

func (m *member) respondSync(result SyncResult, err error) {
	if m.pendingSync != nil {
		m.pendingSync.response <- response[SyncResult]{result, err}
		m.pendingSync = nil
		m.expires = time.Now().Add(m.sessionTimeout)
	}
}

// isWaiting reports whether a call waits on behalf of the member, which proves that it is alive.
func (m *member) isWaiting() bool { return m.pendingJoin != nil || m.pendingSync != nil }

// renewSession restarts a member's session timeout.
func (m *member) renewSession() { m.expires = time.Now().Add(m.sessionTimeout) }
