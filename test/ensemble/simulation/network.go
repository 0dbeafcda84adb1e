package simulation

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"freshet/internal/ensemble/replicated"
)

// network is a member's connection to the other members. It implements replicated.Peers.
//
// Only states of copies are exchanged. Checkpoints are files on a real disk, and simulated copies are not.
type network struct {
	w    *world
	from *member
}

// Call implements replicated.Peers.
func (n *network) Call(member string) (via *http.Client, url string, err error) {
	return &http.Client{Transport: &route{n, member}}, "http://" + member, nil
}

// route is the way to a member.
type route struct {
	n  *network
	to string
}

var errUnreachable = errors.New("simulated member is unreachable")

// RoundTrip implements http.RoundTripper.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	to := r.n.w.get(r.to)
	if to == nil || !to.nats.Reachable() || !r.n.from.nats.Reachable() {
		return nil, errUnreachable
	}
	out := httptest.NewRecorder()
	if strings.HasSuffix(request.URL.Path, "/state") {
		replicated.Handler(to.find).ServeHTTP(out, request)
	} else {
		http.Error(out, "not simulated", http.StatusServiceUnavailable)
	}
	time.Sleep(time.Millisecond)
	return out.Result(), nil
}

// find returns a shard of the member.
func (m *member) find(cluster string, number int) *replicated.Shard {
	if cluster != clusterID || number < 0 || number >= len(m.shards) {
		return nil
	}
	return m.shards[number]
}
