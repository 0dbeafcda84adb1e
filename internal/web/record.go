package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"freshet/internal/errs"
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
	Expected  bool // a failure status is an answer here, as on health pages
}

// SetRoute names the surface and the route pattern that serve the request.
func (rec *Record) SetRoute(surface, route string) {
	rec.Surface, rec.Route = surface, route
}

// Fail notes the error that decided the response.
func (rec *Record) Fail(err error) { rec.Err = err }

func (rec *Record) attrs(r *http.Request, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("surface", rec.Surface),
		slog.String("method", r.Method),
		slog.String("route", rec.Route),
		slog.Int("status", rec.Status),
		slog.Int64("bytes", rec.Bytes),
		slog.Duration("duration", took),
		slog.String("request_id", rec.RequestID),
		slog.String("remote", r.RemoteAddr),
	}
	if rec.Principal != "" {
		attrs = append(attrs, slog.String("principal", rec.Principal))
	}
	if rec.Err != nil {
		attrs = append(attrs,
			slog.String("error", rec.Err.Error()),
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
