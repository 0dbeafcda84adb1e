package pipeline

import (
	"context"
	"errors"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

// StatusErrors is the error table of the surfaces beside the resource API, whose clients are
// the same. It responds with a Status in the form of the resource API. The value is the realm
// of the challenge to unauthenticated callers.
type StatusErrors string

// statuses has the statuses of the kinds of errors.
var statuses = map[errs.Kind]int{
	errs.Invalid:         http.StatusBadRequest,
	errs.Unauthenticated: http.StatusUnauthorized,
	errs.Denied:          http.StatusForbidden,
	errs.NotFound:        http.StatusNotFound,
	errs.Conflict:        http.StatusConflict,
	errs.Precondition:    http.StatusPreconditionFailed,
	errs.TooLarge:        http.StatusRequestEntityTooLarge,
	errs.Unavailable:     http.StatusServiceUnavailable,
	errs.Exhausted:       http.StatusForbidden,
	errs.Throttled:       http.StatusTooManyRequests,
	errs.Internal:        http.StatusInternalServerError,
}

// reasons are the reason values of statuses, the same as in the resource API.
var reasons = map[int]string{
	http.StatusBadRequest:          "BadRequest",
	http.StatusUnauthorized:        "Unauthorized",
	http.StatusForbidden:           "Forbidden",
	http.StatusNotFound:            "NotFound",
	http.StatusMethodNotAllowed:    "MethodNotAllowed",
	http.StatusConflict:            "Conflict",
	http.StatusPreconditionFailed:  "PreconditionFailed",
	http.StatusTooManyRequests:     "TooManyRequests",
	http.StatusServiceUnavailable:  "ServiceUnavailable",
	http.StatusInternalServerError: "InternalError",
}

// Status implements ErrorTable.
func (StatusErrors) Status(err error) int {
	var refusal *web.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.Status
	case errors.Is(err, ErrMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return statuses[errs.KindOf(err)]
}

// Write implements ErrorTable.
func (realm StatusErrors) Write(c *Call, err error, status int) {
	message, header := err.Error(), c.W.Header()
	switch status {
	case http.StatusInternalServerError:
		// The log has the cause; callers must not see it.
		message = "internal error, request id " + web.RecordOf(c.R.Context()).RequestID
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", RetryAfter(err))
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", Challenge(string(realm), err))
	case http.StatusMethodNotAllowed:
		header.Set("Allow", c.Allow)
	}
	_ = web.WriteJSON(c.W, status, "application/json", map[string]any{ // strings and numbers always marshal
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "message": message, "reason": reasons[status], "code": status,
	})
}

// Refuse responds with an error to a request that a surface with this table cannot serve yet.
func (realm StatusErrors) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	realm.Write(&Call{W: w, R: r}, err, realm.Status(err))
}
