package apiserver

import (
	"context"
	"net/http"
	"strings"
)

// drain ends the watches of callers during shutdown, because a watch otherwise runs until its
// client ends it. The service's own watches over the loopback continue until the controllers have
// stopped.
type drain struct {
	ended context.Context //nolint:containedctx // canceled by Drain; ends the watches
	end   context.CancelFunc
}

func newDrain() *drain {
	d := &drain{}
	d.ended, d.end = context.WithCancel(context.Background())
	return d
}

func (d *drain) handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isWatch(r) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(d.ended, cancel)()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// isWatch detects a watch by its query or by the deprecated form of its path.
func isWatch(r *http.Request) bool {
	if strings.Contains(r.URL.Path, "/watch/") {
		return true
	}
	// Every value that does not clearly mean no counts as a watch: ending a list early on a
	// stopping server does no harm, and the API machinery accepts several values for true.
	query := r.URL.Query()
	return query.Has("watch") && query.Get("watch") != "false" && query.Get("watch") != "0"
}

// Drain ends every watch that arrived or will arrive over Handler.
func (s *Server) Drain() { s.drain.end() }
