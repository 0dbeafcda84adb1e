package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Backoff between attempts.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	// maxRetryAfter is the longest Retry-After that is followed; above it the call returns
	// the error.
	maxRetryAfter = 30 * time.Second
)

// retryPolicy retries a call.
type retryPolicy struct{ attempts int }

// permanentError is an error that is not retried.
type permanentError struct{ err error }

func (p *permanentError) Error() string { return p.err.Error() }
func (p *permanentError) Unwrap() error { return p.err }

func permanent(err error) error { return &permanentError{err} }

// do calls call until it succeeds, returns an error that is not retried, or the number of
// attempts is reached. repeatable means that the call is idempotent.
func (p retryPolicy) do(ctx context.Context, repeatable bool, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := call(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", context.Cause(ctx), wrapNetworkError(err))
		}
		wait, retry := p.wait(err, attempt, repeatable)
		if !retry {
			return wrapNetworkError(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", context.Cause(ctx), wrapNetworkError(err))
		}
	}
}

// wait returns the backoff before the next attempt, and whether to make one.
func (p retryPolicy) wait(err error, attempt int, repeatable bool) (time.Duration, bool) {
	if attempt >= p.attempts {
		return 0, false
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		switch refused.Status {
		case http.StatusTooManyRequests:
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			if !repeatable {
				return 0, false
			}
		default:
			return 0, false
		}
		if refused.RetryAfter > maxRetryAfter {
			return 0, false
		}
		return max(jitter(attempt), refused.RetryAfter), true
	}
	if _, ok := errors.AsType[*permanentError](err); ok || !repeatable && !notSent(err) {
		return 0, false
	}
	return jitter(attempt), true
}

// jitter returns an exponential backoff with 50 % jitter, so that clients that failed at the
// same time do not retry at the same time.
func jitter(attempt int) time.Duration {
	wait := min(minBackoff<<min(attempt-1, 10), maxBackoff)
	return wait/2 + rand.N(wait/2)
}

// notSent reports whether the call cannot have reached the server.
func notSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED)
}

// wrapNetworkError wraps a network error as ErrUnavailable and returns other errors unchanged.
func wrapNetworkError(err error) error {
	var refused *Error
	var permanentErr *permanentError
	var gone *unreachable
	switch {
	case errors.As(err, &permanentErr):
		return permanentErr.err
	case errors.As(err, &refused), errors.As(err, &gone):
		return err
	}
	return &unreachable{err}
}
