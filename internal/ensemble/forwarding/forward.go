// Package forwarding sends a request to the member that owns its topic or coordinates its
// consumer group, and serves the requests that other members send.
//
// A member forwards a request to the internal port of the owner, with all headers of the client
// and its address. The owner authenticates and authorizes it like any other request, and never
// forwards it again. The package does not find the owner: package dataplane/ensemble does. The
// connections between members are those of package membership.
package forwarding

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
	"freshet/internal/ensemble/remote"
	"freshet/internal/storage/engine"
)

// Path is the path on the internal port for forwarded requests.
const Path = "/forward"

// The client's URI is in a header, because it must arrive unchanged.
const (
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

// Network has the connections to the other members, as membership.Network does.
type Network interface {
	// Client returns the HTTP/2 client for a member.
	Client(member string) (*http.Client, bool)
	// Pool returns a transport for requests without a body or with a small one.
	Pool(member string) (http.RoundTripper, bool)
	// URL returns the URL of a path on a member.
	URL(member, path string) string
}

// Requests is the front of the server, which has received the clients' requests.
type Requests interface {
	// RequestID returns the id of a client's request, which the owner continues to use.
	RequestID(r *http.Request) string
	// Refuse sends a client the error err. cause is for the log.
	Refuse(w http.ResponseWriter, r *http.Request, err, cause error)
}

// Forwarder forwards requests from this member. All fields are required.
type Forwarder struct {
	Self     string
	Network  Network
	Requests Requests
}

// Sender forwards a request to a member and copies the response to the client. After an error the
// caller can serve the request itself, see Forwarder.Forward.
type Sender = func(w http.ResponseWriter, r *http.Request) error

// Sender returns the Sender to the owner, or nil if the owner is this member or unknown.
func (f *Forwarder) Sender(owner engine.Owner) Sender {
	if owner.Member == "" || owner.Member == f.Self {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) error { return f.Forward(w, r, owner.Member) }
}

// Forward sends a request to another member and the response to the client. After an error
// the caller can serve the request itself: the member has not handled it, and the client has
// got no response.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, member string) error {
	client, ok := f.Network.Client(member)
	if !ok {
		return errs.Newf(errs.NotFound, "member %q is not in members.list", member)
	}
	again, err := bufferBody(r)
	if err != nil {
		return err
	}
	target, err := url.Parse(f.Network.URL(member, Path))
	if err != nil {
		return err
	}
	var unreached error
	via, pool := client.Transport, false
	if small, ok := f.Network.Pool(member); ok && again() && r.Header.Get("Upgrade") == "" {
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
			p.Out.Header.Set(headerRequest, f.Requests.RequestID(p.In))
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
		err := errs.Newf(errs.Unavailable, "%w (member %s)", remote.ErrUnreachable, member)
		f.Requests.Refuse(w, r, err, unreached)
	}
	return nil
}

// replayBytes is the maximum size of bodies that Forward reads before it sends them.
const replayBytes = 64 << 10

// bufferBody reads a small body, so that it can be sent again: a member that is stopping
// rejects new requests, and the next owner or this server serves them. again resets the body
// to its start and reports whether it could. If reading the body fails, bufferBody returns
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

// Forwarded reports whether another member has forwarded a request, so that this member must
// handle it.
func Forwarded(r *http.Request) bool { return r.Context().Value(forwardedKey{}) != nil }

// Handler returns the handler for requests that other members forward, at Path. served serves
// them like requests of clients, with the request id in the header requestID. Only members can
// call the handler, so it trusts the headers.
func Handler(served http.Handler, requestID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := url.ParseRequestURI(r.Header.Get(headerURI))
		if err != nil {
			http.Error(w, "forwarded request has no valid "+headerURI+" header", http.StatusBadRequest)
			return
		}
		r = r.Clone(context.WithValue(r.Context(), forwardedKey{}, true))
		r.URL, r.RequestURI, r.RemoteAddr = asked, r.Header.Get(headerURI), r.Header.Get(headerClient)
		if id := r.Header.Get(headerRequest); id != "" {
			r.Header.Set(requestID, id)
		}
		for _, name := range []string{headerURI, headerClient, headerRequest} {
			r.Header.Del(name)
		}
		w.Header().Set(headerServed, "1")
		served.ServeHTTP(w, r)
	})
}
