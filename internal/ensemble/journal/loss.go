package journal

import (
	"context"
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// lossError means that a stream has lost records or a snapshot that were durable, or contains others.
// A call that returns it has changed nothing, so it can be repeated when the journal is rebuilt.
type lossError struct{ what string }

func (e *lossError) Error() string { return e.what }

// Unwrap makes the error final and of the kind of damaged data.
func (e *lossError) Unwrap() error { return engine.ErrCorrupt }

// lossOf converts an error about damaged content into a lossError.
func lossOf(err error) error {
	var loss *lossError
	if errors.Is(err, engine.ErrCorrupt) && !errors.As(err, &loss) {
		return &lossError{err.Error()}
	}
	return err
}

var (
	// errFenced is the loss that every member sees in a stream that another one has replaced.
	errFenced = &lossError{"stream is closed, because the journal is rebuilt in another one"}
	// errRetired ends a wait on a stream that another one has replaced.
	errRetired = errs.New(errs.Unavailable, "stream of the journal was replaced")
)

// identityKey is the key of a stream's identity in its metadata.
const identityKey = "freshet.journal"

// identity returns the identity of a stream. A stream of an earlier version has the time of its creation.
func identity(info *natsjs.StreamInfo) string {
	if id := info.Config.Metadata[identityKey]; id != "" {
		return id
	}
	return "created " + info.Created.UTC().Format("2006-01-02T15:04:05.999999999Z")
}

// info returns the leader's state of the stream, and a lossError when the stream does not exist or
// another one has its name.
func (j *journal) info(ctx context.Context) (*natsjs.StreamInfo, error) {
	info, err := j.s.info(ctx, j.stream, "")
	if err != nil {
		return nil, j.gone(err)
	}
	if is := identity(info); j.id != "" && is != j.id {
		return nil, &lossError{fmt.Sprintf("stream %s is %q, but the journal was written to %q", j.stream, is, j.id)}
	}
	return info, nil
}

// get reads a message from the leader, like Journals.get.
func (j *journal) get(ctx context.Context, r getRequest) (storedMessage, error) {
	found, err := j.s.get(ctx, j.stream, r)
	return found, j.gone(err)
}

// gone converts the response that the stream does not exist into a lossError. Without an identity the
// stream has just been created, and the servers may not all know it yet.
func (j *journal) gone(err error) error {
	if j.id != "" && hasAPICode(err, codeNoStream) {
		return &lossError{fmt.Sprintf("stream %s does not exist", j.stream)}
	}
	return err
}
