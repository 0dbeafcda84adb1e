package web

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// RequestIDHeader is the header of the request id, in requests and responses.
const RequestIDHeader = "X-Request-Id"

// Observer is notified of every finished request; metrics implement it.
type Observer interface {
	ObserveRequest(surface, route, method string, status int, took time.Duration, bytes int64)
}

// Middleware adds an id and a record to every request, recovers from panics of the
// handler, and at the end logs the request and notifies the observer.
func Middleware(next http.Handler, log RequestLog, observer Observer) http.Handler {
	return MiddlewareWithShutdown(next, log, observer, new(atomic.Bool))
}

// MiddlewareWithShutdown is Middleware for a server that can shut down. Once ending is true,
// every response closes its connection, including responses to earlier requests. Over
// HTTP/2, net/http sends GOAWAY instead.
func MiddlewareWithShutdown(next http.Handler, log RequestLog, observer Observer, ending *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{Context: r.Context(), id: [1]string{requestID(r)}}
		x.rec = Record{RequestID: x.id[0], Started: time.Now()}
		w.Header()[RequestIDHeader] = x.id[:]
		x.out = responseWriter{ResponseWriter: w, rec: &x.rec, shuttingDown: ending}
		defer finish(x, r, log, observer)
		next.ServeHTTP(&x.out, r.WithContext(x))
	})
}

// exchange is Middleware's state of a request: its record, its response writer, and the
// context that returns the record. It is one allocation, because every request has one.
type exchange struct {
	context.Context //nolint:containedctx // it is the request's context

	rec Record
	out responseWriter
	id  [1]string // the value of the response's header
}

// Value implements context.Context.
func (x *exchange) Value(key any) any {
	if key == (recordKey{}) {
		return &x.rec
	}
	return x.Context.Value(key)
}

// finish logs and observes a request. It is deferred, so that it can recover from a
// panic of the handler.
func finish(x *exchange, r *http.Request, log RequestLog, observer Observer) {
	out, rec, panicked := &x.out, &x.rec, false
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler { //nolint:errorlint // net/http's own sentinel panic value
			rec.Fail(http.ErrAbortHandler)
			defer panic(p)
		} else {
			panicked = true
			rec.Fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			if rec.Status == 0 {
				http.Error(out, "internal server error, request id "+rec.RequestID, http.StatusInternalServerError)
			}
		}
	}
	if rec.Status == 0 {
		out.begin(http.StatusOK)
	}
	disconnected := r.Context().Err() != nil && !panicked
	level := rec.level(disconnected)
	took := time.Since(rec.Started)
	if observer != nil {
		observer.ObserveRequest(rec.Surface, rec.Route, r.Method, rec.Status, took, rec.Bytes)
	}
	if log.Enabled(x, level) {
		attrs := rec.attrs(r, took)
		if disconnected {
			attrs = append(attrs, slog.Bool("client_gone", true))
		}
		log.LogAttrs(context.WithoutCancel(x), level, "request", attrs...)
	}
}

// requestID returns the client's id if it is short and printable, otherwise a random one.
func requestID(r *http.Request) string {
	if ids := r.Header[RequestIDHeader]; len(ids) > 0 && validRequestID(ids[0]) {
		return ids[0]
	}
	var raw [10]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand aborts the process instead
	return base32.HexEncoding.EncodeToString(raw[:])
}

func validRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '"' {
			return false
		}
	}
	return true
}

// responseWriter records the status and the size of a response. It also implements
// Flush, CloseNotify and Hijack, which the resource API's watches need.
type responseWriter struct {
	http.ResponseWriter
	rec          *Record
	shuttingDown *atomic.Bool
}

// begin is called before the header is written.
func (w *responseWriter) begin(status int) {
	w.rec.Status = status
	if w.shuttingDown.Load() {
		w.Header().Set("Connection", "close")
	}
}

func (w *responseWriter) WriteHeader(status int) {
	if w.rec.Status == 0 && status >= http.StatusOK {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	if w.rec.Status == 0 {
		w.begin(http.StatusOK)
	}
	w.rec.inspect(p)
	n, err := w.ResponseWriter.Write(p)
	w.rec.Bytes += int64(n)
	w.rec.charge(n)
	return n, err
}

// WriteString implements io.StringWriter, as net/http's own writers do.
func (w *responseWriter) WriteString(s string) (int, error) {
	if w.rec.Status == 0 {
		w.begin(http.StatusOK)
	}
	n, err := io.WriteString(w.ResponseWriter, s)
	w.rec.Bytes += int64(n)
	w.rec.charge(n)
	return n, err
}

func (w *responseWriter) Flush() {
	_ = w.FlushError() // callers that need the error call FlushError
}

// FlushError is for http.ResponseController. It returns an error if the client has
// disconnected.
func (w *responseWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// CloseNotify is for libraries that still need it; new code uses the context.
func (w *responseWriter) CloseNotify() <-chan bool {
	if notifier, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // k8s.io/apiserver needs it
		return notifier.CloseNotify()
	}
	return make(chan bool)
}

// Hijack hands the connection over to a handler of another protocol: the resource API
// serves watches over WebSockets.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.rec.Status == 0 {
		w.rec.Status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
