package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"freshet/internal/base/errs"
)

// Record is the log record of a request. Middleware creates it, handlers fill it in, and
// Middleware logs it once at the end.
type Record struct {
	RequestID  string
	Surface    string // resources, messages, registry, token, console
	Route      string // the pattern, never the raw path
	Principal  string
	Audience   string
	Status     int
	Bytes      int64
	Started    time.Time
	Err        error
	Refusal    *Refusal // why surfaces must reject the request; nil for valid requests
	LogAtDebug bool     // an error status is a normal result, as for health checks; logged at debug
	Meter      Meter    // counts the bytes of the request; nil until the caller is known
	// IsClientError reports whether a response with an error status of the server is about a mistake of the
	// client, given the beginning of its body; nil if the status alone decides.
	IsClientError func(status int, body []byte) bool

	clientError bool // what IsClientError has returned
}

// inspect calls IsClientError with the first bytes of an error response.
func (rec *Record) inspect(body []byte) {
	if rec.IsClientError != nil && rec.Bytes == 0 && rec.Status >= http.StatusInternalServerError {
		rec.clientError = rec.IsClientError(rec.Status, body)
	}
}

// Meter counts the bytes of requests and responses.
type Meter interface{ Charge(bytes int64) }

// charge counts bytes of the request or the response.
func (rec *Record) charge(n int) {
	if rec.Meter != nil {
		rec.Meter.Charge(int64(n))
	}
}

// SetRoute names the surface and the route pattern that serve the request.
func (rec *Record) SetRoute(surface, route string) {
	rec.Surface, rec.Route = surface, route
}

// Fail records the error of the response.
func (rec *Record) Fail(err error) { rec.Err = err }

// level returns the level to log the request at: error for a failure of the server,
// debug for health checks, otherwise info.
func (rec *Record) level(clientGone bool) slog.Level {
	switch {
	case rec.LogAtDebug:
		return slog.LevelDebug
	case rec.Status < http.StatusInternalServerError, clientGone, rec.clientError,
		errors.Is(rec.Err, ErrBusy), errors.Is(rec.Err, ErrStarting), errors.Is(rec.Err, ErrNoMajority):
		return slog.LevelInfo
	case rec.Status == http.StatusNotImplemented, rec.Status == http.StatusHTTPVersionNotSupported:
		return slog.LevelInfo // the client used a transfer encoding or a version that does not exist here
	}
	return slog.LevelError
}

// maxLoggedPath limits what a client can put into a log line, in bytes.
const maxLoggedPath = 512

// loggedPath returns the path without the query, because a query can contain secrets.
func loggedPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if len(path) > maxLoggedPath {
		return path[:maxLoggedPath] + "…"
	}
	return path
}

// maxLoggedError limits an error in the log, in bytes. It is enough for a panic with its
// stack. Errors about input often quote the input, which can be large.
const maxLoggedError = 8 << 10

func loggedError(err error) string {
	text := err.Error()
	if len(text) > maxLoggedError {
		return strings.ToValidUTF8(text[:maxLoggedError], "") + "…"
	}
	return text
}

// shortDuration formats a duration with a few significant digits.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func (rec *Record) attrs(r *http.Request, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("surface", rec.Surface),
		slog.String("method", r.Method),
		slog.String("route", rec.Route),
		slog.String("path", loggedPath(r)),
		slog.Int("status", rec.Status),
		slog.Int64("bytes", rec.Bytes),
		slog.String("duration", shortDuration(took)),
		slog.String("request_id", rec.RequestID),
		slog.String("remote", r.RemoteAddr),
	}
	if rec.Principal != "" {
		attrs = append(attrs, slog.String("principal", rec.Principal))
	}
	if rec.Err != nil {
		attrs = append(attrs,
			slog.String("error", loggedError(rec.Err)),
			slog.String("error_kind", errs.KindOf(rec.Err).String()))
	}
	return attrs
}

type recordKey struct{}

// RecordOf returns the request's record. Outside of Middleware it returns an unused one,
// so that callers need not check for nil.
func RecordOf(ctx context.Context) *Record {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		return rec
	}
	return &Record{}
}
