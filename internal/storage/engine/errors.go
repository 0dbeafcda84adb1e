package engine

import (
	"errors"

	"freshet/internal/base/errs"
)

// The errors of engines; compare with errors.Is.
var (
	ErrNoTopic            = errs.New(errs.NotFound, "topic does not exist")
	ErrTopicExists        = errs.New(errs.Conflict, "topic exists already")
	ErrNoPartition        = errs.New(errs.NotFound, "partition does not exist")
	ErrNoSubscription     = errs.New(errs.NotFound, "subscription does not exist")
	ErrSubscriptionExists = errs.New(errs.Conflict, "subscription exists already")
	ErrForeignID          = errs.New(errs.NotFound, "message id does not belong to this topic")
	ErrLeaseEnded         = errs.New(errs.Conflict, "lease of the message has ended: it expired, was released or the "+
		"message is acknowledged; another consumer may have received the message")
	ErrNoMessage   = errs.New(errs.NotFound, "message does not exist")
	ErrInvalid     = errs.New(errs.Invalid, "request is not valid")
	ErrTooLarge    = errs.New(errs.TooLarge, "message is too large")
	ErrTerminated  = errs.New(errs.Conflict, "topic is terminated and accepts no more messages")
	ErrBacklogFull = errs.New(errs.Unavailable,
		"backlog quota of a subscription is exhausted; consume and acknowledge messages, then produce again")
	ErrDiskFull = errs.New(errs.Unavailable,
		"disk is nearly full: messages can be consumed and acknowledged but not produced until space is freed")
	ErrBusy     = errs.New(errs.Unavailable, "engine is overloaded; try again shortly")
	ErrConflict = errs.New(errs.Conflict,
		"journal has records that this writer has not read; read them and decide again")
	ErrCompacted = errs.New(errs.Precondition,
		"journal records are compacted into a snapshot; load the snapshot and replay the records after it")
	ErrCorrupt = errs.New(errs.Unavailable,
		"stored data is damaged; see the server log for the first damage, or run freshet check to list all of it")
	ErrNoSelector = errs.New(errs.Unavailable,
		"filter of the subscription cannot be evaluated yet; try again shortly")
	ErrFailed  = errs.New(errs.Unavailable, "engine stopped after a failed write; see the server log")
	ErrNotOpen = errs.New(errs.Unavailable, "messaging cluster could not be opened; see the server log for the cause")
	// ErrOpening is returned instead of ErrNotOpen by a member of an ensemble, which opens its
	// clusters again until it succeeds.
	ErrOpening = errs.New(errs.Unavailable,
		"messaging cluster is not open on this member yet; the member tries again; retry in a moment")
	ErrClosed  = errs.New(errs.Unavailable, "engine is closed")
	ErrLogLost = errs.New(errs.Unavailable, "shard's copy does not match its replicated log; "+
		"start the members that are stopped, or list what would be lost with: freshet ensemble accept-loss")
	ErrJournalLost = errs.New(errs.Unavailable, "journal of the cluster has lost records and is closed; "+
		"show what the members have with: freshet ensemble repair")
	ErrNewerFormat = errs.New(errs.Unavailable, "stored data was written by a newer version of the server; "+
		"start that version, or restore a backup of this version; a member of an ensemble can join again without "+
		"data, with: freshet ensemble replace")
)

// DamagedMessage identifies a message that could not be read. It wraps ErrCorrupt.
type DamagedMessage struct {
	ID    MessageID
	Cause error
}

// Error returns the text of the cause, which is meant for the server log.
func (d *DamagedMessage) Error() string { return d.Cause.Error() }

// Unwrap returns the cause.
func (d *DamagedMessage) Unwrap() error { return d.Cause }

// PublicError returns the error that clients may see when stored data cannot be used,
// or nil for other errors. Names of damaged files and keys belong in the log only.
func PublicError(err error) error {
	for _, public := range []error{ErrNewerFormat, ErrLogLost, ErrJournalLost, ErrCorrupt, ErrNotOpen} {
		if errors.Is(err, public) {
			return public
		}
	}
	return nil
}
