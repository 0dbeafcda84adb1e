package kafkaapi

import (
	"sync/atomic"
	"time"
)

// Stats are the statistics of a server since its start.
type Stats struct {
	Connections         map[string]int // by the listener's name
	Clients             map[Client]int // connections by client software
	Requests            map[string]Requests
	AuthFailures        int64 // clients rejected for missing or wrong credentials
	RejectedConnections int64 // connections rejected or closed because of a limit
	Throttled           int64 // responses with a throttle time
	FetchSessions       int   // fetch sessions
	ShareSessions       int   // share sessions
	Memory              int64 // bytes of requests and responses that count against stream.memory
}

// Client is a client's software, as the client reports it.
type Client struct{ Name, Version string }

// Requests are the statistics of one API.
type Requests struct {
	Count             int64
	BytesIn, BytesOut int64
	Time              time.Duration // from receiving requests to sending their responses
}

// requests counts the requests of one API.
type requests struct{ count, in, out, nanos atomic.Int64 }

func (r *requests) add(a *pendingResponse, out int) {
	r.count.Add(1)
	r.in.Add(int64(a.requestSize))
	r.out.Add(int64(out))
	r.nanos.Add(int64(time.Since(a.receivedAt)))
}

// maxClients bounds the entries of Stats.Clients; the rest is counted as "other".
const maxClients = 100

// Stats returns the current statistics.
func (s *Server) Stats() Stats {
	stats := Stats{
		Connections: make(map[string]int), Clients: make(map[Client]int), Requests: make(map[string]Requests),
		AuthFailures: s.authFailures.Load(), RejectedConnections: s.rejectedConnections.Load(),
		Throttled: s.throttled.Load(), Memory: s.room.used(),
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
	stats.FetchSessions, stats.ShareSessions = s.fetchSessions, len(s.shareSessions.byKey)
	for l, n := range s.listeners {
		stats.Connections[s.listenerNames[l]] += n
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
