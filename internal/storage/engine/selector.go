package engine

import (
	"context"
	"time"
)

// Selector evaluates the filters of subscriptions. The caller of an engine implements it.
type Selector interface {
	// Select waits until the caller of ctx may use a processor for a short time, and calls read once
	// with a function that evaluates the filter for messages of the topic. It returns the error of
	// read, or an error without having called it: context.DeadlineExceeded if it has waited for
	// timeout.
	Select(ctx context.Context, timeout time.Duration, id TopicID, filter string,
		read func(evaluate Evaluate) error) error
	// PassedOver is called with the number of messages that were acknowledged because a filter did
	// not select them. It must be fast.
	PassedOver(id TopicID, messages int)
}

// Evaluate evaluates a filter for a message. It is valid only during the call of read.
type Evaluate func(*Record) Verdict

// Verdict is the result of evaluating a filter for a message.
type Verdict uint8

// The verdicts.
const (
	Selected   Verdict = iota // deliver the message
	PassedOver                // acknowledge it without a delivery
	Failed                    // deliver it, because the filter cannot be evaluated for it
)
