package auditapi

import (
	"context"
	"errors"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/surfaces/pipeline"
)

// statuses is the surface's one table from errors to HTTP statuses.
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
	http.StatusTooManyRequests:     "TooManyRequests",
	http.StatusServiceUnavailable:  "ServiceUnavailable",
	http.StatusInternalServerError: "InternalError",
}

func statusOf(err error) int {
	var refusal *web.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.Status
	case errors.Is(err, errMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return statuses[errs.KindOf(err)]
}

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error) { writeError(w, r, err) }

// writeError responds with an error in the form of the resource API's Status.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	message := err.Error()
	switch status {
	case http.StatusInternalServerError:
		// The log has the cause; callers must not see it.
		message = "internal error, request id " + web.RecordOf(r.Context()).RequestID
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", pipeline.RetryAfter(err))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", pipeline.Challenge("audit", err))
	}
	_ = web.WriteJSON(w, status, "application/json", map[string]any{ // strings and numbers always marshal
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "message": message, "reason": reasons[status], "code": status,
	})
}
