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

// RequestIDHeader carries the request id in and out.
const RequestIDHeader = "X-Request-Id"

// Observer is told of every finished request; metrics implement it.
type Observer interface {
	ObserveRequest(surface, route, method string, status int, took time.Duration, bytes int64)
}

// Middleware gives every request an id and a record, keeps a panicking handler
// from taking the process down, and logs and observes once at the end.
func Middleware(next http.Handler, log RequestLog, observer Observer) http.Handler {
	return MiddlewareUntil(next, log, observer, new(atomic.Bool))
}

// MiddlewareUntil is Middleware for a server that can end: from then on every
// response ends its connection, those to requests that came before too. Over
// HTTP/2 net/http makes a GOAWAY of it.
func MiddlewareUntil(next http.Handler, log RequestLog, observer Observer, ending *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{Context: r.Context(), id: [1]string{requestID(r)}}
		x.rec = Record{RequestID: x.id[0], Started: time.Now()}
		w.Header()[RequestIDHeader] = x.id[:]
		x.out = responseWriter{ResponseWriter: w, rec: &x.rec, ending: ending}
		defer finish(x, r, log, observer)
		next.ServeHTTP(&x.out, r.WithContext(x))
	})
}

// exchange is what Middleware keeps of a request: its record, its response, and
// the context that leads to the record. Every request has one, so it is one
// piece of memory.
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

// finish ends a request; it is deferred, and knows whether the handler panicked.
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
	gone := r.Context().Err() != nil && !panicked
	level := rec.level(gone)
	took := time.Since(rec.Started)
	if observer != nil {
		observer.ObserveRequest(rec.Surface, rec.Route, r.Method, rec.Status, took, rec.Bytes)
	}
	if log.Enabled(x, level) {
		attrs := rec.attrs(r, took)
		if gone {
			attrs = append(attrs, slog.Bool("client_gone", true))
		}
		log.LogAttrs(context.WithoutCancel(x), level, "request", attrs...)
	}
}

// requestID takes the caller's id when it is short and printable, else makes one.
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

// responseWriter counts what goes out. It keeps Flush, CloseNotify and Hijack,
// which the resource API's watches look for.
type responseWriter struct {
	http.ResponseWriter
	rec    *Record
	ending *atomic.Bool
}

// begin is called before the header goes out.
func (w *responseWriter) begin(status int) {
	w.rec.Status = status
	if w.ending.Load() {
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
	_ = w.FlushError() // whoever wants to know calls FlushError
}

// FlushError tells http.ResponseController when the client is gone.
func (w *responseWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// CloseNotify serves libraries that still ask for it; new code uses the context.
func (w *responseWriter) CloseNotify() <-chan bool {
	if notifier, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // k8s.io/apiserver needs it
		return notifier.CloseNotify()
	}
	return make(chan bool)
}

// Hijack hands the connection over to whoever speaks another protocol on it: a
// watch can be had over a WebSocket.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.rec.Status == 0 {
		w.rec.Status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
