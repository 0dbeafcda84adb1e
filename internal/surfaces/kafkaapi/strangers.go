package kafkaapi

import (
	"container/list"
	"time"
)

// strangers are the connections that have not authenticated. Anybody can open some,
// so there are few of them: of an address, and in all. Beyond that those that have
// waited longest are ended. Many clients that come at once, as after a restart, are
// no strangers a moment later, so the bound of an address counts after settleTime.
//
// Server.mu guards it.
type strangers struct {
	most      int
	waiting   *list.List            // of *conn, the oldest in front
	addresses map[string]*list.List // the same of each address
}

// settleTime is how long a burst of one address may take to authenticate.
const settleTime = 2 * time.Second

func newStrangers(most int) strangers {
	return strangers{most: most, waiting: list.New(), addresses: make(map[string]*list.List)}
}

// addLocked takes a connection in, and returns the one that has to go for it, and
// whether its address has too many now.
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

// removeLocked is for a connection that has authenticated, or ended.
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

// surplusLocked takes out what an address has too many of, the oldest first, and
// says when to look again; 0 for never.
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

// thin ends the surplus of an address, now and as long as there is some.
func (s *Server) thin(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone, again := s.strangers.surplusLocked(address, time.Now())
	for _, c := range gone {
		_ = c.accepted.Close() // its own goroutine does the rest
	}
	if again > 0 && !s.closed {
		time.AfterFunc(again, func() { s.thin(address) })
	}
	if len(gone) > 0 {
		s.turnedAwayLocked("connections of one address that do not authenticate", address)
	}
}

// recognize notes that a connection has authenticated.
func (s *Server) recognize(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strangers.removeLocked(c)
}
