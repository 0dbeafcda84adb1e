package remote

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
)

// ErrUnreachable means that the connection to the owner broke during a call.
var ErrUnreachable = errs.New(errs.Unavailable,
	"connection to the member that owns the topic's shard broke; the call may or may not have taken effect; try again")

// sentinels are the errors that keep their identity between members. The names are part of
// the wire format, because members of different versions call each other.
var sentinels = map[string]error{
	"NoTopic": engine.ErrNoTopic, "TopicExists": engine.ErrTopicExists, "NoPartition": engine.ErrNoPartition,
	"NoSubscription": engine.ErrNoSubscription, "SubscriptionExists": engine.ErrSubscriptionExists,
	"ForeignID": engine.ErrForeignID, "LeaseEnded": engine.ErrLeaseEnded, "NoMessage": engine.ErrNoMessage,
	"Invalid": engine.ErrInvalid, "TooLarge": engine.ErrTooLarge, "Terminated": engine.ErrTerminated,
	"BacklogFull": engine.ErrBacklogFull, "DiskFull": engine.ErrDiskFull, "Busy": engine.ErrBusy,
	"Conflict": engine.ErrConflict, "Compacted": engine.ErrCompacted, "Corrupt": engine.ErrCorrupt,
	"Failed": engine.ErrFailed, "NotOpen": engine.ErrNotOpen, "Closed": engine.ErrClosed,
	"NewerFormat": engine.ErrNewerFormat, "NotOwner": engine.ErrNotOwner, "NotBegun": engine.ErrNotBegun,
	"NoOwner": engine.ErrNoOwner, "LogLost": engine.ErrLogLost, "JournalLost": engine.ErrJournalLost,
	"NoSelector": engine.ErrNoSelector, "UnpackingBusy": unpacking.ErrBusy,
	"Canceled": context.Canceled, "DeadlineExceeded": context.DeadlineExceeded,
}

// wireError is the wire format of an error.
type wireError struct {
	Text    string
	Kind    errs.Kind
	Names   []string          // of the sentinels that the error wraps
	Damaged *engine.MessageID // of an engine.DamagedMessage
	Refused bool              // nothing has happened
	Owner   engine.Owner      // that the refusing member knows
}

func newWireError(err error) *wireError {
	f := &wireError{Text: err.Error(), Kind: errs.KindOf(err)}
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			f.Names = append(f.Names, name)
		}
	}
	var damaged *engine.DamagedMessage
	if errors.As(err, &damaged) {
		f.Damaged = &damaged.ID
	}
	return f
}

// err returns the error for the caller.
func (f *wireError) err() error {
	e := &remoteError{text: f.Text, refused: f.Refused, owner: f.Owner, causes: []error{errs.New(f.Kind, f.Text)}}
	if f.Kind == errs.Internal {
		e.causes = nil
	}
	for _, name := range f.Names {
		if sentinel, ok := sentinels[name]; ok {
			e.causes = append(e.causes, sentinel)
		}
	}
	if f.Damaged != nil {
		return &engine.DamagedMessage{ID: *f.Damaged, Cause: e}
	}
	return e
}

// remoteError is an error of another member.
type remoteError struct {
	text    string
	causes  []error
	refused bool
	owner   engine.Owner
}

// Error returns the error text of the owner.
func (e *remoteError) Error() string { return e.text }

// Unwrap returns the kind and the sentinels of the error.
func (e *remoteError) Unwrap() []error { return e.causes }

// Refused reports whether a call failed before it could have an effect, so that it may be
// retried. The owner is the one that the refusing member knows, if any.
func Refused(err error) (engine.Owner, bool) {
	var e *remoteError
	if errors.As(err, &e) && e.refused {
		return e.owner, true
	}
	return engine.Owner{}, false
}

// notSentError returns the error of a call that was never sent. Its text contains no address
// of a member, because clients see it.
func notSentError(err error) error {
	return &remoteError{text: engine.ErrNoOwner.Error(), refused: true, causes: []error{engine.ErrNoOwner, err}}
}
