package apiserver

import (
	"context"
	"net/http"
	"strings"
)

// drain ends the watches of callers, which would otherwise hold a stopping
// server up: a watch has no end of its own. The service's own watches, over the
// loopback, go on until the controllers have stopped.
type drain struct {
	ended context.Context //nolint:containedctx // ended by Drain; watches hang on it
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

// isWatch knows a watch by its query or by the old form of its path.
func isWatch(r *http.Request) bool {
	if strings.Contains(r.URL.Path, "/watch/") {
		return true
	}
	// Whatever is not plainly no: ending a list early on a stopping server does
	// no harm, and the machinery has several words for yes.
	query := r.URL.Query()
	return query.Has("watch") && query.Get("watch") != "false" && query.Get("watch") != "0"
}

// Drain ends every watch that came in over Handler, now and from now on.
func (s *Server) Drain() { s.drain.end() }
