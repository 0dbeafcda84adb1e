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

// Requests for a topic that another member owns are sent on to that member's
// internal port, with everything that the client sent, and its address. There they
// are served like any other request, credentials and permissions included, and never
// sent on again.

// forwardPath is where members take requests of each other's clients. What the client
// asked for stands in headers: a path must arrive as it was written.
const (
	forwardPath   = "/forward"
	headerURI     = "Freshet-Request-Uri"
	headerClient  = "Freshet-Client-Address"
	headerRequest = "Freshet-Request-Id"
	// headerServed is on every answer to what was sent on. A member that is starting
	// answers without it.
	headerServed = "Freshet-Served"
)

// errNotServed says that the member did not take the request: it has just started,
// and owns nothing any more.
var errNotServed = errors.New("member is starting")

// ownerOf returns what sends a request to the owner of a topic; nil when it is to be
// served here.
func (s *server) ownerOf(c *dataplane.Cluster) func(*http.Request, names.Topic) brokerhttp.Sender {
	if s.group == nil {
		return nil
	}
	return func(r *http.Request, topic names.Topic) brokerhttp.Sender {
		if r.Context().Value(forwardedKey{}) != nil {
			return nil // one hop at most
		}
		id, ok := c.Broker.IDOf(r.Context(), topic)
		if !ok {
			return nil // there is no such topic, or it is made by this call
		}
		owner, _ := c.OwnerOf(id)
		return s.sender(owner)
	}
}

// coordinatorOf is ownerOf for consumer groups.
func (s *server) coordinatorOf(c *dataplane.Cluster) func(*http.Request, groups.Key) brokerhttp.Sender {
	if s.group == nil {
		return nil
	}
	return func(r *http.Request, group groups.Key) brokerhttp.Sender {
		if r.Context().Value(forwardedKey{}) != nil {
			return nil
		}
		return s.sender(c.CoordinatorOf(group))
	}
}

// coordinatorsOf returns what sends a request to each other member that coordinates
// consumer groups.
func (s *server) coordinatorsOf(c *dataplane.Cluster) func(*http.Request) (others []brokerhttp.Sender,
	sentOn bool, err error) {
	if s.group == nil {
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

// sender sends requests to a member, unless that is this one or nobody.
func (s *server) sender(owner engine.Owner) brokerhttp.Sender {
	if owner.Member == "" || owner.Member == s.cfg.Members.Self {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) error { return s.forward(w, r, owner.Member) }
}

// forward sends a request to another member and its answer to the client. An error
// means that nothing of it has left this server.
func (s *server) forward(w http.ResponseWriter, r *http.Request, member string) error {
	client, base, err := s.callMember(member)
	if err != nil {
		return err
	}
	again, err := replayable(r)
	if err != nil {
		return err
	}
	target, err := url.Parse(base + forwardPath)
	if err != nil {
		return err
	}
	var unreached error
	via, pool := client.Transport, false
	if small, ok := s.group.network.Pool(member); ok && again() && r.Header.Get("Upgrade") == "" {
		via, pool = small, true
	}
	proxy := httputil.ReverseProxy{
		Transport: via,                        // answers without a length are flushed as they come
		ErrorLog:  log.New(io.Discard, "", 0), // what is wrong is said below
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, p.In.Host
			if pool {
				p.Out.Header.Del("Expect") // the body is here
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
				answer.Header.Del(name) // this server has set its own
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
	whole := again() // nothing of the request is used up
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

// replayBytes bounds the bodies that are read before they are sent on.
const replayBytes = 64 << 10

// replayable reads a small body, so that it can be sent once more: a member that ends
// refuses what it has not begun with, and the owner after it, or this server, takes
// it. again brings the body back to its beginning, and says whether it could. What
// could not be read is served here, where its error is told.
func replayable(r *http.Request) (again func() bool, err error) {
	if r.ContentLength == 0 {
		return func() bool { return true }, nil
	}
	if r.ContentLength < 0 || r.ContentLength > replayBytes {
		return func() bool { return false }, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
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

// failing is the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type forwardedKey struct{}

// forwarded serves what other members send on. Only members reach it, so its headers
// can be believed.
func (s *server) forwarded() http.Handler {
	bounded := web.BoundHeaders(web.BoundBodies(&s.front, s.cfg.Timeouts.ReadBody.Std()), int(s.cfg.Limits.HeaderSize))
	served := web.MiddlewareUntil(bounded, s.access, nil, &s.ending)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := url.ParseRequestURI(r.Header.Get(headerURI))
		if err != nil {
			http.Error(w, "request of a member has no address", http.StatusBadRequest)
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
