package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"freshet/internal/base/web"
)

// refusals answers requests that net/http turns away by itself, in a plain text
// of its own, before any handler sees them: malformed ones, and those with a
// header past every bound. It recognizes that text when it is written to the
// connection and writes what the surface of the path would have said instead.
//
// Nothing that a handler writes can be mistaken for it: it is looked for only
// while no handler has the connection, that is from the beginning, or from when
// the last response was finished (http.StateIdle), until the next handler starts.
type refusals struct {
	routes   http.Handler
	log      web.RequestLog
	observer web.Observer
}

// attach has a server answer through r. Its connections must be watchedConns.
func (r *refusals) attach(server *http.Server) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, watchedKey{}, c.(watcher).watched())
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			c.(watcher).watched().awaitRequest()
		}
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(watchedKey{}).(*watchedConn); ok {
			c.handled.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

type watchedKey struct{}

// watcher is a watchedConn, over TLS or not.
type watcher interface{ watched() *watchedConn }

// watch makes a listener whose connections r answers on.
func (r *refusals) watch(l net.Listener) net.Listener { return watchedListener{l, r} }

type watchedListener struct {
	net.Listener
	refusals *refusals
}

// Accept implements net.Listener.
func (l watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	watched := &watchedConn{Conn: c, refusals: l.refusals}
	if secured, ok := c.(*tls.Conn); ok {
		return &watchedTLSConn{watched, secured}, nil
	}
	return watched, nil
}

// watchedConn is a connection whose refusals are replaced. net/http reads and
// writes it one after the other while no handler has it, so beginning needs no
// lock.
type watchedConn struct {
	net.Conn
	refusals  *refusals
	handled   atomic.Bool // a handler has the connection
	http2     atomic.Bool // it speaks HTTP/2, so this does not concern it
	beginning []byte      // of the request that is awaited
}

func (c *watchedConn) watched() *watchedConn { return c }

// maxBeginning is how much of a request is kept to find its path in.
const maxBeginning = 1 << 10

// awaitRequest is called when a response is finished.
func (c *watchedConn) awaitRequest() {
	if c.http2.Load() {
		return
	}
	c.beginning = c.beginning[:0]
	c.handled.Store(false)
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n <= 0 || c.handled.Load() || c.http2.Load() {
		return n, err
	}
	if room := maxBeginning - len(c.beginning); room > 0 {
		c.beginning = append(c.beginning, p[:min(n, room)]...)
		if bytes.HasPrefix(c.beginning, []byte("PRI * HTTP/2.0")) {
			c.http2.Store(true)
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *watchedConn) Write(p []byte) (int, error) {
	if c.handled.Load() || c.http2.Load() {
		return c.Conn.Write(p)
	}
	refusal := refusalIn(p)
	if refusal == nil {
		return c.Conn.Write(p)
	}
	c.handled.Store(true) // nothing follows
	if _, err := c.Conn.Write(c.refusals.answer(refusal, c.beginning, c.RemoteAddr())); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite ends one direction, so that the client gets to read the answer.
func (c *watchedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// watchedTLSConn is a watchedConn over TLS.
type watchedTLSConn struct {
	*watchedConn
	secured *tls.Conn
}

// ConnectionState tells net/http about the TLS below, whose requests then say so.
func (c *watchedTLSConn) ConnectionState() tls.ConnectionState { return c.secured.ConnectionState() }

// refusalIn reads what net/http writes about a request that it does not take, or
// returns nil when that is something else.
func refusalIn(response []byte) *web.Refusal {
	const fields = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	rest, ok := bytes.CutPrefix(response, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 3 {
		return nil
	}
	status, _ := strconv.Atoi(string(rest[:3])) // 0 is no status that is looked for
	if status == 0 || (!bytes.Contains(rest, []byte(fields)) && status != http.StatusExpectationFailed) {
		return nil
	}
	line, _, _ := strings.Cut(string(rest), "\r\n")
	_, detail, _ := strings.Cut(line, ": ")
	switch {
	case status == http.StatusRequestHeaderFieldsTooLarge:
		detail = "the header of the request is too large"
	case status == http.StatusNotImplemented:
		detail = "the transfer encoding of the request is not supported; use chunked, or a Content-Length"
	case status == http.StatusExpectationFailed:
		detail = "the header Expect knows 100-continue only"
	case detail == "":
		detail = "the request is not valid HTTP: check the request line, the escapes in its path, and the header"
	default:
		detail = "the request is not valid HTTP: " + detail
	}
	return &web.Refusal{Status: status, Text: detail}
}

// answer is the response of the surface that the request was meant for.
func (r *refusals) answer(refusal *web.Refusal, beginning []byte, from net.Addr) []byte {
	method, path := requestLine(beginning)
	request := (&http.Request{
		Method: method, URL: &url.URL{Path: path}, RequestURI: path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, RemoteAddr: from.String(),
	}).WithContext(context.Background())
	response := &bufferedResponse{header: http.Header{}}
	web.Middleware(web.Refuse(r.routes, refusal), r.log, r.observer).ServeHTTP(response, request)
	return response.bytes()
}

// requestLine finds the method and the path of a request of which nobody knows
// what is wrong with it.
func requestLine(beginning []byte) (method, path string) {
	line, _, _ := bytes.Cut(bytes.TrimLeft(beginning, "\r\n"), []byte("\n"))
	words := strings.Fields(strings.ToValidUTF8(string(line), "?"))
	if len(words) < 2 {
		return http.MethodGet, "/"
	}
	target, _, _ := strings.Cut(words[1], "?")
	if _, rest, ok := strings.Cut(target, "://"); ok {
		_, target, _ = strings.Cut(rest, "/")
		target = "/" + target
	}
	if !strings.HasPrefix(target, "/") {
		target = "/"
	}
	if words[0] == http.MethodPost {
		return http.MethodPost, target
	}
	return http.MethodGet, target
}

// bufferedResponse keeps a response until it is complete.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *bufferedResponse) Header() http.Header { return b.header }

func (b *bufferedResponse) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

func (b *bufferedResponse) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return b.body.Write(p)
}

// bytes is the response as it goes over the wire; the connection ends with it.
func (b *bufferedResponse) bytes() []byte {
	b.header.Set("Connection", "close")
	b.header.Set("Content-Length", strconv.Itoa(b.body.Len()))
	b.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", b.status, http.StatusText(b.status))
	_ = b.header.Write(&out) // a buffer takes everything
	out.WriteString("\r\n")
	out.Write(b.body.Bytes())
	return out.Bytes()
}
