package kafkaapi

import (
	"container/list"
	"time"
)

// strangers is the set of connections that have not authenticated. Anyone can open connections, so
// their number is limited, in total and per address; over a limit the oldest ones are closed. Many
// clients of one address may connect at the same time, for example after a restart, and
// authenticate a moment later. So the limit per address applies only after settleTime.
//
// Server.mu protects it.
type strangers struct {
	most      int
	waiting   *list.List            // of *conn, oldest first
	addresses map[string]*list.List // the same by address
}

// settleTime is the time that a burst of connections from one address has to authenticate.
const settleTime = 2 * time.Second

func newStrangers(most int) strangers {
	return strangers{most: most, waiting: list.New(), addresses: make(map[string]*list.List)}
}

// addLocked adds a connection. It returns the connection that must be closed for it, and whether
// its address has exceeded the limit now.
func (s *strangers) addLocked(c *conn) (gone *conn, crowded bool) {
	if s.waiting.Len() >= s.most {
		gone, _ = s.waiting.Front().Value.(*conn)
		s.removeLocked(gone)
	}
	same := s.addresses[c.address]
	if same == nil {
		same = list.New()
		s.addresses[c.address] = same
	}
	c.since = time.Now()
	c.waiting, c.beside = s.waiting.PushBack(c), same.PushBack(c)
	return gone, same.Len() == strangersByAddress+1
}

// removeLocked removes a connection that has authenticated or ended.
func (s *strangers) removeLocked(c *conn) {
	if c.waiting == nil {
		return
	}
	s.waiting.Remove(c.waiting)
	same := s.addresses[c.address]
	same.Remove(c.beside)
	c.waiting, c.beside = nil, nil
	if same.Len() == 0 {
		delete(s.addresses, c.address)
	}
}

// surplusLocked removes the connections of an address over the limit, the oldest first. It returns
// them, and the delay after which to check again; 0 for never.
func (s *strangers) surplusLocked(address string, now time.Time) (gone []*conn, again time.Duration) {
	for same := s.addresses[address]; same != nil && same.Len() > strangersByAddress; {
		c, _ := same.Front().Value.(*conn)
		if wait := settleTime - now.Sub(c.since); wait > 0 {
			return gone, wait
		}
		s.removeLocked(c)
		gone = append(gone, c)
	}
	return gone, 0
}

// thin closes the connections of an address over the limit, and checks again while some remain.
func (s *Server) thin(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone, again := s.strangers.surplusLocked(address, time.Now())
	for _, c := range gone {
		_ = c.accepted.Close() // its own goroutine cleans up
	}
	if again > 0 && !s.closed {
		time.AfterFunc(again, func() { s.thin(address) })
	}
	if len(gone) > 0 {
		s.turnedAwayLocked("connections of one address that do not authenticate", address)
	}
}

// recognize records that a connection has authenticated.
func (s *Server) recognize(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strangers.removeLocked(c)
}
