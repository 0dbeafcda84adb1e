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

// Record is the one structured record of a request: made on arrival, filled by
// whoever knows something, logged once at the end.
type Record struct {
	RequestID string
	Surface   string // resources, messages, registry, token, console
	Route     string // the pattern, never the raw path
	Principal string
	Audience  string
	Status    int
	Bytes     int64
	Started   time.Time
	Err       error
	Refusal   *Refusal // why no surface should look at the request; nil for most
	Expected  bool     // a failure status is an answer here, as on health pages
	Meter     Meter    // whose bytes these are; nil until that is known
}

// Meter counts the bytes of requests and responses as they come and go.
type Meter interface{ Charge(bytes int64) }

// charge counts bytes for whoever the request is of.
func (rec *Record) charge(n int) {
	if rec.Meter != nil {
		rec.Meter.Charge(int64(n))
	}
}

// SetRoute names the surface and the route pattern that serve the request.
func (rec *Record) SetRoute(surface, route string) {
	rec.Surface, rec.Route = surface, route
}

// Fail notes the error that decided the response.
func (rec *Record) Fail(err error) { rec.Err = err }

// level is that of the request's line: a failure of the server is an error, a
// page that probes ask for all the time is detail.
func (rec *Record) level(clientGone bool) slog.Level {
	switch {
	case rec.Expected:
		return slog.LevelDebug
	case rec.Status < http.StatusInternalServerError, clientGone, errors.Is(rec.Err, ErrBusy),
		errors.Is(rec.Err, ErrStarting), errors.Is(rec.Err, ErrNoMajority):
		return slog.LevelInfo
	}
	return slog.LevelError
}

// maxLoggedPath bounds what a caller can put into a line.
const maxLoggedPath = 512

// loggedPath names the resource or topic. The query is left out: it may hold
// anything.
func loggedPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if len(path) > maxLoggedPath {
		return path[:maxLoggedPath] + "…"
	}
	return path
}

// maxLoggedError is enough for a panic with its stack. Errors about input often
// quote it.
const maxLoggedError = 8 << 10

func loggedError(err error) string {
	text := err.Error()
	if len(text) > maxLoggedError {
		return strings.ToValidUTF8(text[:maxLoggedError], "") + "…"
	}
	return text
}

// readable is a duration with three or four digits.
func readable(d time.Duration) string {
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
		slog.String("duration", readable(took)),
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

// RecordOf returns the request's record; a spare one outside Middleware, so
// that callers never have to check.
func RecordOf(ctx context.Context) *Record {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		return rec
	}
	return &Record{}
}
