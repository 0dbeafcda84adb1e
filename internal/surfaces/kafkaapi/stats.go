package kafkaapi

import (
	"sync/atomic"
	"time"
)

// Stats is what a server has done since it started.
type Stats struct {
	Connections map[string]int // by the listener's name
	Clients     map[Client]int // connections by what the client says it is
	Requests    map[string]Requests
	Refused     int64 // clients that were turned away: no credentials, or wrong ones
	TurnedAway  int64 // connections for which there was no room
	Throttled   int64 // answers with a time to wait
	Sessions    int   // fetch sessions
}

// Client is a program, as it says itself.
type Client struct{ Name, Version string }

// Requests is what was asked of one API.
type Requests struct {
	Count             int64
	BytesIn, BytesOut int64
	Time              time.Duration // from taking requests to having sent the answers
}

// requests counts those of one API.
type requests struct{ count, in, out, nanos atomic.Int64 }

func (r *requests) add(a *answer, out int) {
	r.count.Add(1)
	r.in.Add(int64(a.size))
	r.out.Add(int64(out))
	r.nanos.Add(int64(time.Since(a.taken)))
}

// maxClients bounds the programs that are told apart; the rest are others.
const maxClients = 100

// Stats returns what there is now.
func (s *Server) Stats() Stats {
	stats := Stats{
		Connections: make(map[string]int), Clients: make(map[Client]int), Requests: make(map[string]Requests),
		Refused: s.refused.Load(), TurnedAway: s.crowded.Load(), Throttled: s.throttled.Load(),
	}
	for key, api := range s.apis {
		if r := s.requests[key]; r.count.Load() > 0 {
			stats.Requests[api.name] = Requests{
				r.count.Load(), r.in.Load(), r.out.Load(),
				time.Duration(r.nanos.Load()),
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Sessions = s.fetchSessions
	for l, n := range s.listeners {
		stats.Connections[s.names[l]] += n
	}
	for c := range s.conns {
		client := Client{"unknown", ""}
		if known := c.client.Load(); known != nil {
			client = *known
		}
		if _, known := stats.Clients[client]; !known && len(stats.Clients) >= maxClients {
			client = Client{"other", ""}
		}
		stats.Clients[client]++
	}
	return stats
}
