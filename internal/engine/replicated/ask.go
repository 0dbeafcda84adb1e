package replicated

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// leaderPatience is how long the log may be without a leader before a question
	// fails: longer than an election takes.
	leaderPatience = 8 * time.Second
	// askAgain is how long the first answer may take. A leader that steps down, or is
	// gone, drops the question; later tries have more, since the servers may be slow.
	askAgain   = 250 * time.Millisecond
	askPause   = 20 * time.Millisecond
	longestAsk = 3 * time.Second
)

// ask repeats a question to the log's leader until it is answered.
func ask[T any](ctx context.Context, question func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for patience := askAgain; ; patience = min(2*patience, longestAsk) {
		once, cancel := context.WithTimeout(ctx, patience)
		answer, err := question(once)
		cancel()
		if !unanswered(err) || ctx.Err() != nil {
			return answer, err
		}
		timer := time.NewTimer(askPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// unanswered says whether an error means that there was no leader to answer.
func unanswered(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &refused) && refused.Code == http.StatusServiceUnavailable
}
