package examples

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

const (
	// lostResponse is the kind of a call that produces messages; the first one gets no response.
	lostResponse = "produce"
	// topicSlashes is the number of slashes in /admin/rest/topics/v1/public/default/TOPIC/messages.
	topicSlashes = 8
)

// proxy is between a program and the server. mu protects calls.
type proxy struct {
	next http.Handler

	mu    sync.Mutex
	calls map[string]int
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := r.Method + r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
	// The path of a topic has one part less than that of a subscription.
	if kind == "POST/messages" && strings.Count(r.URL.Path, "/") == topicSlashes {
		kind = lostResponse
	}
	p.mu.Lock()
	p.calls[kind]++
	n := p.calls[kind]
	p.mu.Unlock()
	switch {
	case kind == lostResponse && n == 1:
		p.next.ServeHTTP(httptest.NewRecorder(), r) // the server stores the messages
		panic(http.ErrAbortHandler)
	case kind == "POST/messages" && n == 1:
		w.Header().Set("WWW-Authenticate", `Bearer realm="messages", error="invalid_token"`)
		http.Error(w, `{"reason":"the token has expired"}`, http.StatusUnauthorized)
	case kind == "POST/messages" && n == 3, kind == "POST/extend" && n == 1, kind == "PUT/messages" && n == 2:
		http.Error(w, `{"reason":"busy"}`, http.StatusServiceUnavailable)
	case kind == "POST/messages" && n == 5, kind == "PUT/messages" && n == 1:
		panic(http.ErrAbortHandler) // closes the connection
	default:
		p.next.ServeHTTP(w, r)
	}
}

func (p *proxy) count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[kind]
}
