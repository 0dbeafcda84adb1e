package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/groups"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/remote"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/brokerhttp"
)

// A member forwards a request for a topic of another member to that member's internal port,
// with all headers of the client and its address. The owner authenticates and authorizes it
// like any other request, and never forwards it again.

// forwardPath is the path on the internal port for forwarded requests. The client's URI is
// in a header, because it must arrive unchanged.
const (
	forwardPath   = "/forward"
	headerURI     = "Freshet-Request-Uri"
	headerClient  = "Freshet-Client-Address"
	headerRequest = "Freshet-Request-Id"
	// headerServed is in every response to a forwarded request. Responses of a member
	// that is starting do not have it.
	headerServed = "Freshet-Served"
)

// errNotServed means that the member did not handle the request, because it has just
// started. It does not own the topic any more.
var errNotServed = errors.New("member is starting")

// ownerOf returns a function that returns the Sender to the owner of a topic, or nil if this
// server serves the request. It returns nil for a single server.
func (s *server) ownerOf(c *dataplane.Cluster) func(*http.Request, names.Topic) brokerhttp.Sender {
	if s.ensemble == nil {
		return nil
	}
	return func(r *http.Request, topic names.Topic) brokerhttp.Sender {
		if r.Context().Value(forwardedKey{}) != nil {
			return nil // a request is forwarded at most once
		}
		id, ok := c.Broker.IDOf(r.Context(), topic)
		if !ok {
			return nil // the topic does not exist, or this call creates it
		}
		owner := c.OwnerOf(id)
		return s.sender(owner)
	}
}

// coordinatorOf is ownerOf for consumer groups.
func (s *server) coordinatorOf(c *dataplane.Cluster) func(*http.Request, groups.Key) brokerhttp.Sender {
	if s.ensemble == nil {
		return nil
	}
	return func(r *http.Request, group groups.Key) brokerhttp.Sender {
		if r.Context().Value(forwardedKey{}) != nil {
			return nil
		}
		return s.sender(c.CoordinatorOf(group))
	}
}

// coordinatorsOf returns a function that returns the Senders to all other members that
// coordinate consumer groups. sentOn reports whether the request was already forwarded.
func (s *server) coordinatorsOf(c *dataplane.Cluster) func(*http.Request) (others []brokerhttp.Sender,
	sentOn bool, err error) {
	if s.ensemble == nil {
		return nil
	}
	return func(r *http.Request) (others []brokerhttp.Sender, sentOn bool, err error) {
		if r.Context().Value(forwardedKey{}) != nil {
			return nil, true, nil
		}
		owners, err := c.Coordinators(r.Context())
		if err != nil {
			return nil, false, err
		}
		for _, owner := range owners {
			if send := s.sender(owner); send != nil {
				others = append(others, send)
			}
		}
		return others, false, nil
	}
}

// sender returns the Sender to a member, or nil if the owner is this member or unknown.
func (s *server) sender(owner engine.Owner) brokerhttp.Sender {
	if owner.Member == "" || owner.Member == s.cfg.Members.Self {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) error { return s.forward(w, r, owner.Member) }
}

// forward sends a request to another member and the response to the client. After an error
// the caller can serve the request itself: the member has not handled it, and the client has
// got no response.
func (s *server) forward(w http.ResponseWriter, r *http.Request, member string) error {
	client, base, err := s.callMember(member)
	if err != nil {
		return err
	}
	again, err := bufferBody(r)
	if err != nil {
		return err
	}
	target, err := url.Parse(base + forwardPath)
	if err != nil {
		return err
	}
	var unreached error
	via, pool := client.Transport, false
	if small, ok := s.ensemble.network.Pool(member); ok && again() && r.Header.Get("Upgrade") == "" {
		via, pool = small, true
	}
	proxy := httputil.ReverseProxy{
		Transport: via,                        // ReverseProxy flushes responses without a length immediately
		ErrorLog:  log.New(io.Discard, "", 0), // errors are reported below
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, p.In.Host
			if pool {
				p.Out.Header.Del("Expect") // this server has already read the body
			}
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, ok := p.In.Header[name]; ok {
					p.Out.Header[name] = values
				}
			}
			p.Out.Header.Set(headerURI, p.In.RequestURI)
			p.Out.Header.Set(headerClient, p.In.RemoteAddr)
			p.Out.Header.Set(headerRequest, web.RecordOf(p.In.Context()).RequestID)
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.Header.Get(headerServed) == "" {
				return errNotServed
			}
			answer.Header.Del(headerServed)
			for name := range w.Header() {
				answer.Header.Del(name) // this server has set its own value
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { unreached = err },
	}
	proxy.ServeHTTP(w, r)
	if unreached == nil {
		return nil
	}
	var dial *net.OpError
	whole := again() // the body can be read again from its start
	if errors.As(unreached, &dial) && dial.Op == "dial" || errors.Is(unreached, errNotServed) && whole {
		return unreached
	}
	if r.Context().Err() == nil {
		err = errs.Newf(errs.Unavailable, "%w (member %s)", remote.ErrUnreachable, member)
		web.RecordOf(r.Context()).Fail(unreached)
		brokerhttp.Refuse(w, r, err)
	}
	return nil
}

// replayBytes is the maximum size of bodies that forward reads before it sends them.
const replayBytes = 64 << 10

// bufferBody reads a small body, so that it can be sent again: a member that is stopping
// rejects new requests, and the next owner or this server serves them. again resets the body
// to its start and reports whether it could. If reading the body fails, replayable returns
// the error and a body that fails in the same way, so that this server can report it.
func bufferBody(r *http.Request) (again func() bool, err error) {
	if r.ContentLength == 0 {
		return func() bool { return true }, nil
	}
	if r.ContentLength < 0 || r.ContentLength > replayBytes {
		return func() bool { return false }, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failingReader{err}))
		return nil, err
	}
	again = func() bool {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return true
	}
	again()
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return again, nil
}

// failingReader is a body that returns an error.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

type forwardedKey struct{}

// forwarded returns the handler for requests that other members forward. Only members can
// call it, so it trusts the headers.
func (s *server) forwarded() http.Handler {
	bounded := web.LimitHeaders(web.LimitBodyTime(&s.front, s.cfg.Timeouts.ReadBody.Std()),
		int(s.cfg.Limits.HeaderSize))
	served := web.MiddlewareWithShutdown(bounded, s.access, nil, &s.ending)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := url.ParseRequestURI(r.Header.Get(headerURI))
		if err != nil {
			http.Error(w, "forwarded request has no valid "+headerURI+" header", http.StatusBadRequest)
			return
		}
		r = r.Clone(context.WithValue(r.Context(), forwardedKey{}, true))
		r.URL, r.RequestURI, r.RemoteAddr = asked, r.Header.Get(headerURI), r.Header.Get(headerClient)
		if id := r.Header.Get(headerRequest); id != "" {
			r.Header.Set(web.RequestIDHeader, id)
		}
		for _, name := range []string{headerURI, headerClient, headerRequest} {
			r.Header.Del(name)
		}
		w.Header().Set(headerServed, "1")
		served.ServeHTTP(w, r)
	})
}
