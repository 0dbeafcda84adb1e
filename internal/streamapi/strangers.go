package streamapi

import "container/list"

// strangers are the connections that have not authenticated. Anybody can open some,
// so there are few of them: of an address, beyond which more are turned away, and in
// all, beyond which the one that has waited longest is ended. A client that does
// authenticate needs far less time than that takes.
//
// Server.mu guards it.
type strangers struct {
	most      int
	waiting   *list.List // of *conn, the oldest in front
	addresses map[string]int
}

func newStrangers(most int) strangers {
	return strangers{most: most, waiting: list.New(), addresses: make(map[string]int)}
}

// addLocked takes a connection in, and returns the one that has to go for it.
func (s *strangers) addLocked(c *conn) (gone *conn, ok bool) {
	if s.addresses[c.address] >= strangersByAddress {
		return nil, false
	}
	if s.waiting.Len() >= s.most {
		gone, _ = s.waiting.Front().Value.(*conn)
		s.removeLocked(gone)
	}
	s.addresses[c.address]++
	c.waiting = s.waiting.PushBack(c)
	return gone, true
}

// removeLocked is for a connection that has authenticated, or ended.
func (s *strangers) removeLocked(c *conn) {
	if c.waiting == nil {
		return
	}
	s.waiting.Remove(c.waiting)
	c.waiting = nil
	if s.addresses[c.address]--; s.addresses[c.address] == 0 {
		delete(s.addresses, c.address)
	}
}

// recognize notes that a connection has authenticated.
func (s *Server) recognize(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strangers.removeLocked(c)
}
