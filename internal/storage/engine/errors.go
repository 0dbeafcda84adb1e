package engine

import (
	"errors"

	"freshet/internal/base/errs"
)

// What engines return; compare with errors.Is.
var (
	ErrNoTopic            = errs.New(errs.NotFound, "topic does not exist")
	ErrTopicExists        = errs.New(errs.Conflict, "topic exists already")
	ErrNoPartition        = errs.New(errs.NotFound, "partition does not exist")
	ErrNoSubscription     = errs.New(errs.NotFound, "subscription does not exist")
	ErrSubscriptionExists = errs.New(errs.Conflict, "subscription exists already")
	ErrForeignID          = errs.New(errs.NotFound, "message id does not belong to this topic")
	ErrLeaseEnded         = errs.New(errs.Conflict, "caller has no lease on the message: it ran out, was given back "+
		"or is acknowledged, and another consumer may have the message")
	ErrNoMessage   = errs.New(errs.NotFound, "message does not exist")
	ErrInvalid     = errs.New(errs.Invalid, "request is not valid")
	ErrTooLarge    = errs.New(errs.TooLarge, "message is too large")
	ErrTerminated  = errs.New(errs.Conflict, "topic is terminated and takes no more messages")
	ErrBacklogFull = errs.New(errs.Unavailable,
		"a subscription's backlog quota is used up; consume and acknowledge, then produce again")
	ErrDiskFull = errs.New(errs.Unavailable,
		"disk is nearly full: messages can be consumed and acknowledged but not produced until space is freed")
	ErrBusy     = errs.New(errs.Unavailable, "engine is overloaded; try again shortly")
	ErrConflict = errs.New(errs.Conflict,
		"journal has records that this writer has not seen; read them and decide again")
	ErrCompacted = errs.New(errs.Precondition,
		"journal records are compacted into a snapshot; load it and replay behind it")
	ErrCorrupt = errs.New(errs.Unavailable,
		"stored data is damaged; the server log says what, and freshet check lists all of it")
	ErrFailed  = errs.New(errs.Unavailable, "engine stopped after a failed write; see the server log")
	ErrNotOpen = errs.New(errs.Unavailable, "messaging cluster could not be opened; the server log says why")
	ErrClosed  = errs.New(errs.Unavailable, "engine is closed")
	ErrLogLost = errs.New(errs.Unavailable, "shard's copy and its replicated log do not fit together; "+
		"restore a backup, or see what would be lost with: freshet cluster accept-loss")
	ErrNewerFormat = errs.New(errs.Unavailable, "stored data was written by a newer version of the server; "+
		"start that version, or restore a backup that this one made")
)

// DamagedMessage says which message could not be read. It wraps ErrCorrupt.
type DamagedMessage struct {
	ID    MessageID
	Cause error
}

// Error says what is wrong with the message, for the log.
func (d *DamagedMessage) Error() string { return d.Cause.Error() }

// Unwrap returns what was found.
func (d *DamagedMessage) Unwrap() error { return d.Cause }

// PublicError is what a caller may know of why stored data cannot be used: which
// files and keys are damaged is for the log. It is nil for other errors.
func PublicError(err error) error {
	for _, told := range []error{ErrNewerFormat, ErrLogLost, ErrCorrupt, ErrNotOpen} {
		if errors.Is(err, told) {
			return told
		}
	}
	return nil
}
