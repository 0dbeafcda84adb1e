package journal

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// enter begins a call: its context ends with the journals, too, and has a
// deadline. The caller must call leave.
func (s *Journals) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if s.ctx.Err() != nil {
		return nil, nil, engine.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return s.bound(ctx)
}

func (s *Journals) bound(ctx context.Context) (context.Context, func(), error) {
	ctx, cancelCause := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancelCause(engine.ErrClosed) })
	cancel := context.CancelFunc(func() {})
	if _, has := ctx.Deadline(); !has {
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
	}
	return ctx, func() { stop(); cancel(); cancelCause(nil) }, nil
}

// failed says why a call did not succeed: an error of the engine as it is, and
// everything else as something that may work later.
func (s *Journals) failed(ctx context.Context, doing string, err error) error {
	if s.ctx.Err() != nil {
		return engine.ErrClosed
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return errs.Newf(errs.KindOf(err), "%s: %w", doing, err)
	}
	return errs.Newf(errs.Unavailable, "%s: the replicated log cannot be reached; try again shortly: %w", doing, err)
}

// apiError is a refusal by a server.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description }

// Refusals that mean something to us; the numbers are part of the protocol.
const (
	codeInsufficientResources = 10023
	codeAccountResources      = 10002
	codeStorageResources      = 10047
	codeNoMessage             = 10037
	codeWrongLastSequence     = 10071
	codeWrongLastConstant     = 10164
	codeStoreFailed           = 10077
)

// full says whether a server has no room.
func full(err error) bool {
	return refused(err, codeInsufficientResources, codeAccountResources, codeStorageResources, codeStoreFailed)
}

// final says whether an error is an answer, and not the lack of one.
func final(err error) bool {
	var known *errs.Error
	return errors.As(err, &known)
}

// refused says whether the server answered with one of the codes.
func refused(err error, codes ...int) bool {
	var api *apiError
	if !errors.As(err, &api) {
		return false
	}
	for _, c := range codes {
		if api.ErrCode == c {
			return true
		}
	}
	return false
}
