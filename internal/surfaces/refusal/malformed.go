package refusal

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

	"freshet/internal/base/httpframing"
	"freshet/internal/base/web"
)

// Malformed replaces the responses of net/http to requests that no handler gets: malformed
// requests, and those with a header above the limit. net/http responds with plain text.
// Malformed recognizes that text when it is written to the connection, and writes the error
// response of the surface of the path instead.
//
// It cannot confuse the text with the response of a handler, because it only looks for it
// while no handler uses the connection: from its start, or from the end of the last response
// (http.StateIdle), until the next handler starts.
//
// It also rejects requests that net/http accepts, but whose length is ambiguous (package httpframing).
type Malformed struct {
	Routes   http.Handler // responds in the format of the surface of a path
	Log      web.RequestLog
	Observer web.Observer
}

// Attach makes a server use r. Its listener must be one that Watch returned.
func (r *Malformed) Attach(server *http.Server) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, watchedKey{}, c.(watcher).watched())
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			c.(watcher).watched().awaitRequest()
		}
	}
	next := server.Handler
	server.DisableGeneralOptionsHandler = true // every request must reach the handler below
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if c, ok := req.Context().Value(watchedKey{}).(*watchedConn); ok {
			c.handled.Store(true)
			if err := c.framing.Begin(req.ContentLength, len(req.TransferEncoding) > 0); err != nil {
				r.refuse(w, req, err)
				return
			}
		}
		if req.Method == http.MethodOptions && req.RequestURI == "*" {
			w.Header().Set("Content-Length", "0") // as net/http does
			return
		}
		next.ServeHTTP(w, req)
	})
}

// refuse rejects a request whose length is ambiguous. The connection is closed, so that nothing
// after the header is taken for another request.
func (r *Malformed) refuse(w http.ResponseWriter, req *http.Request, err error) {
	w.Header().Set("Connection", "close")
	req.Body = http.NoBody
	refusal := &web.Refusal{Status: http.StatusBadRequest, Text: err.Error()}
	web.Middleware(web.Refuse(r.Routes, refusal), r.Log, r.Observer).ServeHTTP(w, req)
}

// Plain responds to refusals with plain text, for ports without surfaces.
var Plain http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	refusal := web.Refused(r)
	if refusal == nil {
		refusal = &web.Refusal{Status: http.StatusNotFound, Text: http.StatusText(http.StatusNotFound)}
	}
	http.Error(w, refusal.Text, refusal.Status)
})

type watchedKey struct{}

// watcher is implemented by watchedConn and watchedTLSConn.
type watcher interface{ watched() *watchedConn }

// Watch returns a listener whose connections are watched by r.
func (r *Malformed) Watch(l net.Listener) net.Listener { return watchedListener{l, r} }

type watchedListener struct {
	net.Listener
	refusals *Malformed
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

// watchedConn is a connection whose error responses are replaced. net/http does not read and
// write it concurrently while no handler uses it, so beginning needs no lock.
type watchedConn struct {
	net.Conn
	refusals     *Malformed
	handled      atomic.Bool // a handler uses the connection
	http2        atomic.Bool // the connection uses HTTP/2, for which nothing is replaced
	framing      httpframing.Tracker
	requestStart []byte // start of the next request
}

func (c *watchedConn) watched() *watchedConn { return c }

// maxRequestStart is how many bytes of a request are kept to find its path.
const maxRequestStart = 1 << 10

// awaitRequest is called when a response is finished.
func (c *watchedConn) awaitRequest() {
	if c.http2.Load() {
		return
	}
	c.requestStart = c.requestStart[:0]
	c.handled.Store(false)
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.framing.Read(c.Conn, p)
	if n <= 0 || c.handled.Load() || c.http2.Load() {
		return n, err
	}
	if room := maxRequestStart - len(c.requestStart); room > 0 {
		c.requestStart = append(c.requestStart, p[:min(n, room)]...)
		if bytes.HasPrefix(c.requestStart, []byte("PRI * HTTP/2.0")) {
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
	refusal := parseRefusal(p)
	if refusal == nil {
		return c.Conn.Write(p)
	}
	c.handled.Store(true) // net/http closes the connection afterwards
	if _, err := c.Conn.Write(c.refusals.render(refusal, c.requestStart, c.RemoteAddr())); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite closes one direction, so that the client can still read the response.
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

// ConnectionState returns the TLS state, which net/http copies into Request.TLS.
func (c *watchedTLSConn) ConnectionState() tls.ConnectionState { return c.secured.ConnectionState() }

// parseRefusal parses an error response of net/http. It returns nil for anything else.
func parseRefusal(response []byte) *web.Refusal {
	const fields = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	rest, ok := bytes.CutPrefix(response, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 3 {
		return nil
	}
	status, _ := strconv.Atoi(string(rest[:3])) // 0 on an error, which is no HTTP status
	if status == 0 || (!bytes.Contains(rest, []byte(fields)) && status != http.StatusExpectationFailed) {
		return nil
	}
	line, _, _ := strings.Cut(string(rest), "\r\n")
	_, detail, _ := strings.Cut(line, ": ")
	switch {
	case status == http.StatusRequestHeaderFieldsTooLarge:
		detail = "request header is too large"
	case status == http.StatusNotImplemented:
		detail = "transfer encoding of the request is not supported; use chunked, or a Content-Length"
	case status == http.StatusExpectationFailed:
		detail = "header Expect supports only 100-continue"
	case detail == "":
		detail = "request is not valid HTTP; check the request line, the escapes in its path, and the header"
	default:
		detail = "request is not valid HTTP: " + detail
	}
	return &web.Refusal{Status: status, Text: detail}
}

// render returns the response of the surface of the request's path.
func (r *Malformed) render(refusal *web.Refusal, beginning []byte, from net.Addr) []byte {
	method, path := requestLine(beginning)
	request := (&http.Request{
		Method: method, URL: &url.URL{Path: path}, RequestURI: path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, RemoteAddr: from.String(),
	}).WithContext(context.Background())
	response := &bufferedResponse{header: http.Header{}}
	web.Middleware(web.Refuse(r.Routes, refusal), r.Log, r.Observer).ServeHTTP(response, request)
	return response.bytes()
}

// requestLine returns the method and the path of a request that may be malformed.
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

// bufferedResponse is an http.ResponseWriter that buffers the whole response.
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

// bytes returns the response in HTTP/1.1 format, with Connection: close.
func (b *bufferedResponse) bytes() []byte {
	b.header.Set("Connection", "close")
	b.header.Set("Content-Length", strconv.Itoa(b.body.Len()))
	b.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", b.status, http.StatusText(b.status))
	_ = b.header.Write(&out) // writing to a buffer does not fail
	out.WriteString("\r\n")
	out.Write(b.body.Bytes())
	return out.Bytes()
}
