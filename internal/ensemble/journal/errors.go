package journal

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// enter begins a call. The returned context ends when the Journals are closed and always
// has a deadline. The caller must call leave.
func (s *Journals) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if s.ctx.Err() != nil {
		return nil, nil, engine.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return s.boundContext(ctx)
}

func (s *Journals) boundContext(ctx context.Context) (context.Context, func(), error) {
	ctx, cancelCause := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancelCause(engine.ErrClosed) })
	cancel := context.CancelFunc(func() {})
	if _, has := ctx.Deadline(); !has {
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
	}
	return ctx, func() { stop(); cancel(); cancelCause(nil) }, nil
}

// wrapError wraps the error of a call. It keeps the kind of an errs.Error; every other error
// becomes Unavailable, because a retry may succeed.
func (s *Journals) wrapError(ctx context.Context, doing string, err error) error {
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
	return errs.Newf(errs.Unavailable, "%s: replicated log is unreachable; try again shortly: %w", doing, err)
}

// apiError is an error response of a server.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description }

// Error codes of the JetStream API that this package handles.
const (
	codeInsufficientResources = 10023
	codeAccountResources      = 10002
	codeStorageResources      = 10047
	codeNoMessage             = 10037
	codeNoStream              = 10059
	codeWrongLastSequence     = 10071
	codeWrongLastConstant     = 10164
	codeStoreFailed           = 10077
)

// isStorageFull reports whether a server is out of storage.
func isStorageFull(err error) bool {
	return hasAPICode(err, codeInsufficientResources, codeAccountResources, codeStorageResources, codeStoreFailed)
}

// isFinal reports whether the outcome of a call is known; a missing response is not final.
func isFinal(err error) bool {
	var known *errs.Error
	return errors.As(err, &known)
}

// hasAPICode reports whether the server responded with one of the codes.
func hasAPICode(err error, codes ...int) bool {
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
