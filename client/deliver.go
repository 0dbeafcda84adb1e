package client

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// deliver sends a batch until every message is stored or has failed, and reports the results.
func (p *Producer) deliver(batch []*outgoing) {
	ctx, cancel := context.WithTimeout(p.ctx, p.options.DeliveryTimeout)
	defer cancel()
	for attempt := 1; len(batch) > 0; attempt++ {
		results := p.try(ctx, batch)
		batch = p.settle(ctx, batch, results)
		if len(batch) == 0 {
			return
		}
		timer := time.NewTimer(jitter(attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// try makes one call for a batch. If the server rejects the whole batch as invalid, it makes
// one call for each message, so that one invalid message does not affect the others.
func (p *Producer) try(ctx context.Context, batch []*outgoing) []Result {
	if len(batch) > 1 {
		messages := make([]Message, len(batch))
		for i, o := range batch {
			messages[i] = o.message
		}
		results, err := p.t.produceBatch(ctx, p.options.Name, messages, !p.options.NoIdempotencyKeys)
		if err == nil {
			return results
		}
		if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
			results = make([]Result, len(batch))
			for i := range results {
				results[i].Err = err
			}
			return results
		}
	}
	results := make([]Result, len(batch))
	for i, o := range batch {
		results[i].Produced, results[i].Err = p.t.produce(ctx, p.options.Name, &o.message)
	}
	return results
}

// settle reports the results of messages and returns those to retry.
func (p *Producer) settle(ctx context.Context, batch []*outgoing, results []Result) []*outgoing {
	var retry []*outgoing
	for i, o := range batch {
		err := results[i].Err
		if err != nil && ctx.Err() == nil && p.shouldRetry(err, o) {
			retry = append(retry, o)
			continue
		}
		if o.done != nil {
			o.done(results[i].Produced, err)
		} else if err != nil {
			p.mu.Lock()
			if p.failed == nil {
				p.failed = err
			}
			p.mu.Unlock()
		}
		p.settled(1)
	}
	return retry
}

// shouldRetry reports whether to retry a failed message. A message without an idempotency key is
// retried only if the server has certainly not stored it.
func (p *Producer) shouldRetry(err error, o *outgoing) bool {
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests {
		return true
	}
	return errors.Is(err, ErrUnavailable) && (o.message.IdempotencyKey != "" || notSent(err))
}
