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

// crowd bounds the calls that are worked on at once. Those that are too many
// wait for their turn, and are told to come again when that takes too long; the
// library's own bound would turn them away at once, and not in a Status. Watches
// and health checks do not count, and the service's own calls do not come here.
type crowd struct {
	codecs        serializer.CodecFactory
	reads, writes chan struct{}
	patience      time.Duration
}

const crowdPatience = 20 * time.Second

func newCrowd(codecs serializer.CodecFactory, reads, writes int) *crowd {
	return &crowd{codecs: codecs, reads: make(chan struct{}, reads), writes: make(chan struct{}, writes), patience: crowdPatience}
}

func (c *crowd) handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPublic(r.URL.Path) || isWatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		room := c.writes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			room = c.reads
		}
		if !enter(r.Context(), room, c.patience) {
			web.RecordOf(r.Context()).SetRoute("resources", route(r.URL.Path))
			writeStatus(c.codecs, w, r, apierrors.NewTooManyRequests(
				fmt.Sprintf("%d calls of this kind are being worked on already; try again", cap(room)), 1))
			return
		}
		defer func() { <-room }()
		next.ServeHTTP(w, r)
	})
}

// enter waits for room; false when there was none, or nobody waits any more.
func enter(ctx context.Context, room chan struct{}, patience time.Duration) bool {
	select {
	case room <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case room <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
