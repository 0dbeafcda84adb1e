package replicated

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
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
	replies := make(chan reply[T])
	go replyTo(ctx, query, replies)
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
			go replyTo(ctx, query, replies)
			pause = min(2*pause, maxQueryInterval)
			again.Reset(pause)
		case <-elected:
			go replyTo(ctx, query, replies)
			pause = electedQueryInterval
			again.Reset(pause)
		case <-ctx.Done():
			var none T
			return none, cmp.Or(last, ctx.Err())
		}
	}
}

// reply is the outcome of one attempt of a query.
type reply[T any] struct {
	answer T
	err    error
}

// replyTo sends a query once and passes its outcome on, however late it is, unless the caller has stopped waiting.
func replyTo[T any](ctx context.Context, query func(ctx context.Context) (T, error), replies chan<- reply[T]) {
	answer, err := query(ctx)
	select {
	case replies <- reply[T]{answer, err}:
	case <-ctx.Done():
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

// largeQueryPause is how long the leader may take for a large response before the query is sent again. It
// doubles with each attempt.
const largeQueryPause = time.Second

// queryLarge is queryLeader for a response of up to megabytes, which a starved member sends slowly. Sending the
// query again makes the leader send the response twice, so queryLarge repeats a small query (probe) instead. It
// sends the query again when the leader has answered the probe, and the response is late or the query was
// refused. A signal on elected announces a new leader, which did not get the query.
func queryLarge[T any](ctx context.Context, elected <-chan struct{}, probe func(ctx context.Context) error,
	query func(ctx context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	replies := make(chan reply[T])
	var last error
	for pause := largeQueryPause; ; pause *= 2 {
		go replyTo(ctx, query, replies)
		late := time.After(pause)
		probing, stop := context.WithCancel(ctx)
		probed := startProbe(probing, probe)
		for due, answered := false, false; !due || !answered; {
			select {
			case r := <-replies:
				if !isNoLeader(r.err) {
					stop()
					return r.answer, r.err
				}
				last, due = r.err, true
			case <-late:
				due = true
			case <-probed:
				answered, probed = true, nil // it is closed
			case <-elected:
				due, answered, pause = true, true, minQueryInterval
			case <-ctx.Done():
				stop()
				var none T
				return none, cmp.Or(last, ctx.Err())
			}
		}
		stop()
	}
}

// startProbe repeats a probe from minQueryInterval on. The returned channel is closed when the leader has
// answered.
func startProbe(ctx context.Context, probe func(ctx context.Context) error) <-chan struct{} {
	answered := make(chan struct{})
	go func() {
		if retry.Sleep(ctx, minQueryInterval) != nil {
			return
		}
		_, err := queryLeader(ctx, nil, func(ctx context.Context) (struct{}, error) { return struct{}{}, probe(ctx) })
		if ctx.Err() == nil && !isNoLeader(err) {
			close(answered)
		}
	}()
	return answered
}
