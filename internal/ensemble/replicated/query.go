package replicated

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// leaderTimeout is how long the log may be without a leader before a query fails. It is
	// longer than an election takes.
	leaderTimeout = 8 * time.Second
	// minQueryInterval is the interval before a query is sent a second time, and maxQueryInterval the
	// longest interval. A leader that steps down or crashes drops queries.
	minQueryInterval = 100 * time.Millisecond
	maxQueryInterval = 400 * time.Millisecond
	// electedQueryInterval is the interval after an election: a new leader announces itself a moment
	// before it responds to queries.
	electedQueryInterval = 10 * time.Millisecond
)

// queryLeader sends a query to the log's leader repeatedly until it gets a response. It does not
// wait for one response before it sends the query again, and returns the first one. A signal
// on elected announces a new leader, which is queried immediately; elected may be nil.
func queryLeader[T any](ctx context.Context, elected <-chan struct{},
	query func(ctx context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	type reply struct {
		answer T
		err    error
	}
	replies := make(chan reply)
	once := func() {
		var r reply
		r.answer, r.err = query(ctx) // also a late response counts
		select {
		case replies <- r:
		case <-ctx.Done():
		}
	}
	go once()
	pause, last := minQueryInterval, error(nil)
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case r := <-replies:
			if !isNoLeader(r.err) {
				return r.answer, r.err
			}
			last = r.err
		case <-again.C:
			go once()
			pause = min(2*pause, maxQueryInterval)
			again.Reset(pause)
		case <-elected:
			go once()
			pause = electedQueryInterval
			again.Reset(pause)
		case <-ctx.Done():
			var none T
			return none, cmp.Or(last, ctx.Err())
		}
	}
}

// isNoLeader reports whether an error means that no leader responded.
func isNoLeader(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &refused) &&
		refused.Code == http.StatusServiceUnavailable
}
