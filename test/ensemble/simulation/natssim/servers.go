package natssim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Chances are probabilities of faults, from 0 to 1, for each request to a stream.
type Chances struct {
	Drop   float64 // the request is lost: it has no effect and gets no response
	Late   float64 // the request arrives up to five seconds later, after those that were sent after it
	Repeat float64 // the request arrives a second time, up to a second later
	Silent float64 // the request has its effect, but its response is lost
}

// Replicas is the number of replicas of each stream.
const Replicas = 3

// Servers are the simulated servers.
type Servers struct {
	mu      sync.Mutex // protects the fields below and everything in streams
	random  *rand.Rand
	chances Chances
	streams map[string]*stream
	conns   map[*conn]struct{}
	closed  bool
	wg      sync.WaitGroup
}

// New starts servers whose faults depend on the seed.
func New(seed uint64) *Servers {
	return &Servers{
		random:  rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // a simulation
		streams: map[string]*stream{}, conns: map[*conn]struct{}{},
	}
}

// SetChances changes the probabilities of faults.
func (s *Servers) SetChances(c Chances) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chances = c
}

// Close ends all connections and waits until nothing is on its way.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// later calls f, with mu held, after a time.
func (s *Servers) later(after time.Duration, f func()) {
	s.wg.Go(func() {
		time.Sleep(after)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			f()
		}
	})
}

// chanceLocked reports whether a fault with a probability happens now.
func (s *Servers) chanceLocked(p float64) bool { return s.random.Float64() < p }

// upToLocked returns a random time.
func (s *Servers) upToLocked(longest time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(longest)))
}

// latencyLocked returns how long a message is on its way: usually less than a millisecond, rarely
// much longer.
func (s *Servers) latencyLocked() time.Duration {
	if s.random.IntN(500) == 0 {
		return s.upToLocked(300 * time.Millisecond)
	}
	return 50*time.Microsecond + s.upToLocked(time.Millisecond)
}

// Names returns the names of the streams, in order.
func (s *Servers) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.streams))
}

// deliverLocked sends a message to all subscribers of a subject.
func (s *Servers) deliverLocked(m *message) {
	for c := range s.conns {
		for sid, pattern := range c.subs {
			if matches(pattern, m.subject) {
				c.sendLocked(sid, m)
			}
		}
	}
}

// matches reports whether a subject matches a pattern with * and >.
func matches(pattern, subject string) bool {
	for {
		p, restP, moreP := strings.Cut(pattern, ".")
		n, restN, moreN := strings.Cut(subject, ".")
		switch {
		case p == ">":
			return true
		case p != "*" && p != n:
			return false
		case !moreP || !moreN:
			return moreP == moreN
		}
		pattern, subject = restP, restN
	}
}

// Elect makes another replica the leader of a stream. For a while the stream answers nothing.
func (s *Servers) Elect(name string, leaderless time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[name]
	if st == nil {
		return
	}
	st.leaderless++
	s.later(leaderless, func() {
		st.leaderless--
		if st.leaderless > 0 || s.streams[name] != st {
			return
		}
		st.leader = (st.leader + 1 + s.random.IntN(Replicas-1)) % Replicas
		s.deliverLocked(&message{subject: "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED." + name, data: []byte("{}")})
	})
}

// Damage changes one random message on one replica of a stream, or removes it from that replica.
func (s *Servers) Damage(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[name]; st != nil && st.last >= st.first {
		s.damageLocked(st, st.first+s.random.Uint64N(st.last-st.first+1), s.random.IntN(Replicas))
	}
}

// DamageNext damages the next n messages of a stream on one replica as they are appended. The leader's
// replica is more likely than others, because it answers most reads.
func (s *Servers) DamageNext(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[name]; st != nil {
		st.spoil, st.spoiled = n, st.leader
		if s.random.IntN(4) == 0 {
			st.spoiled = s.random.IntN(Replicas)
		}
	}
}

// damageLocked changes a bit of a message on a replica, or removes the message. The bit is one of the data or
// of a digit in the header, because other changes of a header are found at once.
func (s *Servers) damageLocked(st *stream, seq uint64, replica int) {
	m := st.at(seq, replica)
	if m == nil {
		return
	}
	bad := *m
	bad.data, bad.header = slices.Clone(m.data), slices.Clone(m.header)
	var digits []int
	for i, c := range bad.header {
		if c >= '0' && c <= '9' {
			digits = append(digits, i)
		}
	}
	switch kind := s.random.IntN(8); {
	case kind < 2 && len(digits) > 0:
		bad.header[digits[s.random.IntN(len(digits))]] ^= 1 << s.random.IntN(3)
	case kind < 3 || len(bad.data) == 0:
		st.damaged[replica][seq] = nil
		return
	default:
		bad.data[s.random.IntN(len(bad.data))] ^= 1 << s.random.IntN(8)
	}
	st.damaged[replica][seq] = &bad
}

// Heal replaces the damaged replicas of a stream with good ones.
func (s *Servers) Heal(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[name]; st != nil {
		st.damaged, st.spoil = noDamage(), 0
	}
}

// LoseSome removes up to n messages, which are not the last one, from a random place of a stream, as when a
// majority of the servers has lost them. It returns how many it removed.
func (s *Servers) LoseSome(name string, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[name]
	if st == nil || st.last <= st.first {
		return 0
	}
	lost := 0
	from := st.first + s.random.Uint64N(st.last-st.first)
	for seq := from; seq < st.last && lost < n; seq++ {
		if st.messages[seq] != nil {
			delete(st.messages, seq)
			lost++
		}
	}
	for st.messages[st.first] == nil {
		st.first++
	}
	return lost
}

// Delete removes a stream, as when a majority of the servers has forgotten it.
func (s *Servers) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, name)
}

// LoseEnd removes up to n messages from the end of a stream, as when a majority of the servers forgot
// them. It returns how many it removed.
func (s *Servers) LoseEnd(name string, n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[name]
	if st == nil {
		return 0
	}
	n = min(n, st.last+1-st.first)
	for range n {
		delete(st.messages, st.last)
		st.last--
	}
	maps.DeleteFunc(st.ids, func(_ string, seq uint64) bool { return seq > st.last })
	return n
}
