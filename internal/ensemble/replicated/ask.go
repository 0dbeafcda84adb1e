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
	// leaderPatience is how long the log may be without a leader before a question
	// fails: longer than an election takes.
	leaderPatience = 8 * time.Second
	// askAgain is when a question is asked a second time, and longestAsk the longest
	// time between two. A leader that steps down, or is gone, drops the question.
	askAgain   = 100 * time.Millisecond
	longestAsk = 400 * time.Millisecond
	// askElected is when a leader that has just been elected is asked a second time: it
	// says so a moment before it answers.
	askElected = 10 * time.Millisecond
)

// ask repeats a question to the log's leader until it is answered. It does not wait for
// one answer before it asks again, and takes the first: a leader that has just been
// elected is asked at once. Whoever hears of elections says so on elected; others leave
// it nil.
func ask[T any](ctx context.Context, elected <-chan struct{},
	question func(ctx context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	type reply struct {
		answer T
		err    error
	}
	replies := make(chan reply)
	once := func() {
		var r reply
		r.answer, r.err = question(ctx) // however late it is answered
		select {
		case replies <- r:
		case <-ctx.Done():
		}
	}
	go once()
	pause, last := askAgain, error(nil)
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case r := <-replies:
			if !unanswered(r.err) {
				return r.answer, r.err
			}
			last = r.err
		case <-again.C:
			go once()
			pause = min(2*pause, longestAsk)
			again.Reset(pause)
		case <-elected:
			go once()
			pause = askElected
			again.Reset(pause)
		case <-ctx.Done():
			var none T
			return none, cmp.Or(last, ctx.Err())
		}
	}
}

// unanswered says whether an error means that there was no leader to answer.
func unanswered(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &refused) &&
		refused.Code == http.StatusServiceUnavailable
}
