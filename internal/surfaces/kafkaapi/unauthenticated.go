package kafkaapi

import (
	"container/list"
	"time"
)

// unauthenticatedConns is the set of connections that have not authenticated. Anyone can open connections, so
// their number is limited, in total and per address; over a limit the oldest ones are closed. Many
// clients of one address may connect at the same time, for example after a restart, and
// authenticate a moment later. So the limit per address applies only after authGracePeriod.
//
// Server.mu protects it.
type unauthenticatedConns struct {
	max       int
	waiting   *list.List            // of *conn, oldest first
	byAddress map[string]*list.List // the same by address
}

// authGracePeriod is the time that a burst of connections from one address has to authenticate.
const authGracePeriod = 2 * time.Second

func newUnauthenticatedConns(most int) unauthenticatedConns {
	return unauthenticatedConns{max: most, waiting: list.New(), byAddress: make(map[string]*list.List)}
}

// addLocked adds a connection. It returns the connection that must be closed for it, and whether
// its address has exceeded the limit now.
func (s *unauthenticatedConns) addLocked(c *conn) (gone *conn, crowded bool) {
	if s.waiting.Len() >= s.max {
		gone, _ = s.waiting.Front().Value.(*conn)
		s.removeLocked(gone)
	}
	same := s.byAddress[c.address]
	if same == nil {
		same = list.New()
		s.byAddress[c.address] = same
	}
	c.acceptedAt = time.Now()
	c.waitingElement, c.addressElement = s.waiting.PushBack(c), same.PushBack(c)
	return gone, same.Len() == maxUnauthenticatedByAddress+1
}

// removeLocked removes a connection that has authenticated or ended.
func (s *unauthenticatedConns) removeLocked(c *conn) {
	if c.waitingElement == nil {
		return
	}
	s.waiting.Remove(c.waitingElement)
	same := s.byAddress[c.address]
	same.Remove(c.addressElement)
	c.waitingElement, c.addressElement = nil, nil
	if same.Len() == 0 {
		delete(s.byAddress, c.address)
	}
}

// removeSurplusLocked removes the connections of an address over the limit, the oldest first. It returns
// them, and the delay after which to check again; 0 for never.
func (s *unauthenticatedConns) removeSurplusLocked(address string, now time.Time) (gone []*conn, again time.Duration) {
	for same := s.byAddress[address]; same != nil && same.Len() > maxUnauthenticatedByAddress; {
		c, _ := same.Front().Value.(*conn)
		if wait := authGracePeriod - now.Sub(c.acceptedAt); wait > 0 {
			return gone, wait
		}
		s.removeLocked(c)
		gone = append(gone, c)
	}
	return gone, 0
}

// closeSurplus closes the connections of an address over the limit, and checks again while some remain.
func (s *Server) closeSurplus(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone, again := s.unauthenticated.removeSurplusLocked(address, time.Now())
	for _, c := range gone {
		_ = c.accepted.Close() // its own goroutine cleans up
	}
	if again > 0 && !s.closed {
		time.AfterFunc(again, func() { s.closeSurplus(address) })
	}
	if len(gone) > 0 {
		s.logRejectedLocked("connections of one address that do not authenticate", address)
	}
}

// markAuthenticated records that a connection has authenticated.
func (s *Server) markAuthenticated(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unauthenticated.removeLocked(c)
}
