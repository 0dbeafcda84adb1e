package resources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"freshet/internal/web"
)

// inFlight limits the calls that are worked on at once. Those that are too many
// wait, and are told to come again when that takes too long; the
// library's own bound would turn them away at once, and not in a Status. Watches
// and health checks do not count, and the service's own calls do not come here.
type inFlight struct {
	codecs        serializer.CodecFactory
	kinds         kinds
	reads, writes chan struct{}
	maxWait       time.Duration
}

const maxInFlightWait = 20 * time.Second

func newInFlight(codecs serializer.CodecFactory, kinds kinds, reads, writes int) *inFlight {
	return &inFlight{
		codecs: codecs, kinds: kinds, maxWait: maxInFlightWait,
		reads: make(chan struct{}, reads), writes: make(chan struct{}, writes),
	}
}

func (l *inFlight) handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPublic(r.URL.Path) || isWatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		slots := l.writes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			slots = l.reads
		}
		if !acquire(r.Context(), slots, l.maxWait) {
			web.RecordOf(r.Context()).SetRoute("resources", l.kinds.route(r.URL.Path))
			writeStatus(l.codecs, w, r, apierrors.NewTooManyRequests(
				fmt.Sprintf("the server is working on %d calls of this kind already, which is its limit; try again", cap(slots)), 1))
			return
		}
		defer func() { <-slots }()
		next.ServeHTTP(w, r)
	})
}

// acquire waits for a slot; false when none became free in time, or the caller
// has gone.
func acquire(ctx context.Context, slots chan struct{}, maxWait time.Duration) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
