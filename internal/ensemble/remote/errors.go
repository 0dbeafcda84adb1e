package remote

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// ErrUnreachable means that the connection to the owner broke during a call.
var ErrUnreachable = errs.New(errs.Unavailable,
	"connection to the member that owns the topic's shard broke; the call may or may not have taken effect; try again")

// sentinels are the errors that keep their identity on the way. The names are part
// of the format: members of two versions speak to each other.
var sentinels = map[string]error{
	"NoTopic": engine.ErrNoTopic, "TopicExists": engine.ErrTopicExists, "NoPartition": engine.ErrNoPartition,
	"NoSubscription": engine.ErrNoSubscription, "SubscriptionExists": engine.ErrSubscriptionExists,
	"ForeignID": engine.ErrForeignID, "LeaseEnded": engine.ErrLeaseEnded, "NoMessage": engine.ErrNoMessage,
	"Invalid": engine.ErrInvalid, "TooLarge": engine.ErrTooLarge, "Terminated": engine.ErrTerminated,
	"BacklogFull": engine.ErrBacklogFull, "DiskFull": engine.ErrDiskFull, "Busy": engine.ErrBusy,
	"Conflict": engine.ErrConflict, "Compacted": engine.ErrCompacted, "Corrupt": engine.ErrCorrupt,
	"Failed": engine.ErrFailed, "NotOpen": engine.ErrNotOpen, "Closed": engine.ErrClosed,
	"NewerFormat": engine.ErrNewerFormat, "NotOwner": engine.ErrNotOwner, "NotBegun": engine.ErrNotBegun,
	"NoOwner": engine.ErrNoOwner, "LogLost": engine.ErrLogLost,
	"Canceled": context.Canceled, "DeadlineExceeded": context.DeadlineExceeded,
}

// failure is an error on the way.
type failure struct {
	Text    string
	Kind    errs.Kind
	Names   []string          // of sentinels
	Damaged *engine.MessageID // of an engine.DamagedMessage
	Refused bool              // nothing has happened
	Owner   engine.Owner      // that the refusing member knows
}

func newFailure(err error) *failure {
	f := &failure{Text: err.Error(), Kind: errs.KindOf(err)}
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

// err is the error as the caller gets it.
func (f *failure) err() error {
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

// Error returns the text that the owner gave it.
func (e *remoteError) Error() string { return e.text }

// Unwrap returns the sentinels that it is.
func (e *remoteError) Unwrap() []error { return e.causes }

// Refused says that a call failed before anything can have happened, so that it
// may be made again. The owner is the one that whoever refused knows, if any.
func Refused(err error) (engine.Owner, bool) {
	var e *remoteError
	if errors.As(err, &e) && e.refused {
		return e.owner, true
	}
	return engine.Owner{}, false
}

// notReached is a call that never left this member. What a caller hears has no
// address of a member in it.
func notReached(err error) error {
	return &remoteError{text: engine.ErrNoOwner.Error(), refused: true, causes: []error{engine.ErrNoOwner, err}}
}
