package simulation

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/replicated"
)

// transfers are what members send each other.
type transfers struct {
	mu          sync.Mutex // protects the fields below
	random      *rand.Rand
	cut         float64 // probability that a response ends early
	offered     int     // checkpoints that were offered
	interrupted int     // responses that ended early
}

// set sets the probability that a response ends early.
func (t *transfers) set(cut float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = cut
}

// pass returns the part of a response that arrives, and whether that is all of it.
func (t *transfers) pass(path string, content []byte) (arrives []byte, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.random.Float64() < t.cut && len(content) > 0 {
		t.interrupted++
		return content[:t.random.IntN(len(content))], false
	}
	if strings.HasSuffix(path, "/checkpoint") {
		t.offered++
	}
	return content, true
}

// network is a member's connection to the other members. It implements replicated.Peers and journal.Peers.
type network struct {
	w    *world
	from *member
}

// Call implements replicated.Peers and journal.Peers.
func (n *network) Call(member string) (via *http.Client, url string, err error) {
	return &http.Client{Transport: &route{n, member}}, "http://" + member, nil
}

// route is the way to a member.
type route struct {
	n  *network
	to string
}

var errUnreachable = errors.New("simulated member is unreachable")

// RoundTrip implements http.RoundTripper. A response takes a millisecond, and another one for each 64 KiB.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	to := r.n.w.get(r.to)
	if to == nil || !to.nats.Reachable() || !r.n.from.nats.Reachable() {
		return nil, errUnreachable
	}
	out := httptest.NewRecorder()
	to.handler.ServeHTTP(out, request)
	response, content := out.Result(), out.Body.Bytes()
	time.Sleep(time.Millisecond * time.Duration(1+len(content)>>16))
	if to.crashed.Load() || !to.nats.Reachable() || !r.n.from.nats.Reachable() {
		return nil, errUnreachable
	}
	if response.StatusCode < http.StatusMultipleChoices {
		if arrives, whole := r.n.w.transfers.pass(request.URL.Path, content); !whole {
			response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(arrives), broken{}))
		}
	}
	return response, nil
}

// broken is the end of a response that was interrupted.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// serve returns what the member serves to other members.
func (m *member) serve() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(replicated.Path+"/", replicated.Handler(m.find))
	mux.Handle(journal.Path+"/", journal.Handler(func(string) *journal.Journals { return m.all },
		func(string) string { return m.copies() }))
	return mux
}

// find returns a shard of the member.
func (m *member) find(cluster string, number int) *replicated.Shard {
	if cluster != clusterID || number < 0 || number >= len(m.shards) {
		return nil
	}
	return m.shards[number]
}
