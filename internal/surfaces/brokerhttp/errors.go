package brokerhttp

import (
	"context"
	"errors"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/web"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/pipeline"
)

// Column selects the status column of an error: message calls respond with 401 to a
// denied caller, administrative calls with 403 (docs/spec/messages.md#m11).
type Column uint8

// The columns of the table.
const (
	MessageCalls Column = iota
	AdminCalls
)

// statusRow is the status of an error for message calls and for administrative calls.
type statusRow struct {
	err     error
	message int
	admin   int
}

// statusRows is the one table from errors to statuses, with a column for each of the two
// surfaces. The first matching row wins, which matters for an error that wraps two of
// them.
var statusRows = []statusRow{
	{messaging.ErrNoTenant, 404, 404},
	{messaging.ErrTenantExists, 409, 409},
	{messaging.ErrTenantBusy, 409, 409},
	{messaging.ErrNoNamespace, 404, 404},
	{messaging.ErrNamespaceExists, 409, 409},
	{messaging.ErrNamespaceBusy, 409, 409},
	{messaging.ErrNoTopic, 404, 404},
	{messaging.ErrTopicExists, 409, 409},
	{messaging.ErrTopicBusy, 412, 412},
	{messaging.ErrWrongKind, 409, 409},
	{messaging.ErrPartitioned, 405, 405},
	{messaging.ErrPartitionName, 404, 409},
	{messaging.ErrDottedName, 409, 409},
	{messaging.ErrShadows, 409, 409},
	{messaging.ErrNoAutoCreation, 404, 412},
	{messaging.ErrTopicLimit, 412, 412},
	{messaging.ErrPartitionCount, 400, 422},
	{messaging.ErrNoSubscription, 404, 404},
	{messaging.ErrSubscriptionExists, 409, 409},
	{messaging.ErrSubscriptionBusy, 412, 412},
	{messaging.ErrNoPosition, 412, 412},
	{messaging.ErrNoSchema, 404, 404},
	{messaging.ErrIncompatibleSchema, 409, 409},
	{messaging.ErrInvalidSchema, 422, 422},
	{messaging.ErrSchemaUpdate, 401, 403},
	{messaging.ErrPayload, 400, 400},
	{messaging.ErrSchemaPrefix, 400, 400},
	{messaging.ErrContract, 400, 400},
	{messaging.ErrName, 400, 412},
	{messaging.ErrPolicy, 400, 412},
	{messaging.ErrMessage, 400, 400},
	{messaging.ErrMessageID, 400, 400},
	{messaging.ErrForeignID, 404, 404},
	{messaging.ErrNoMessage, 404, 404},
	{messaging.ErrLeaseEnded, 409, 409},
	{messaging.ErrTooLarge, 413, 413},
	{messaging.ErrBatch, 413, 413},
	{messaging.ErrTooMany, 503, 503},
	{messaging.ErrNoDelay, 400, 400},
	{messaging.ErrClosing, 503, 503},
	{messaging.ErrNoRegistry, 503, 503},
	{messaging.ErrTooMuchData, 413, 413},
	{messaging.ErrDamagedMessage, 503, 503},
	{messaging.ErrCursor, 400, 400},
	{messaging.ErrOwnDeadLetters, 400, 400},
	{filter.ErrExpression, 400, 400},

	{engine.ErrNoPartition, 404, 404},
	{engine.ErrInvalid, 400, 400},
	{engine.ErrTerminated, 409, 409},
	{engine.ErrBacklogFull, 503, 503},
	{engine.ErrDiskFull, 503, 503},
	{engine.ErrBusy, 503, 503},
	{engine.ErrConflict, 503, 503},
	{engine.ErrFailed, 503, 503},
	{engine.ErrClosed, 503, 503},
	{engine.ErrCompacted, 500, 500},
	{engine.ErrCorrupt, 503, 503},
	{engine.ErrNewerFormat, 503, 503},
	{engine.ErrNotOpen, 503, 503},
	{engine.ErrOpening, 503, 503},
	{engine.ErrNotOwner, 503, 503},
	{engine.ErrNoOwner, 503, 503},
	{engine.ErrLogLost, 503, 503},
	{engine.ErrJournalLost, 503, 503},

	{access.ErrDenied, 401, 403},
	{access.ErrNoPrincipal, 401, 401},
	{web.ErrBodyTooLarge, 413, 413},
	{workpool.ErrTooCostly, 400, 422},
	{workpool.ErrBusy, 503, 503},
	{unpacking.ErrBusy, 503, 503},
	{web.ErrBodyTimeout, 408, 408},
	{web.ErrBusy, 503, 503},
	{context.DeadlineExceeded, 503, 503},
	{context.Canceled, 503, 503},

	{web.ErrPathEncoding, 400, 400},
	{pipeline.ErrNoRoute, 404, 404},
	{pipeline.ErrMethod, 405, 405},
	{errNonPersistent, 400, 400},
}

// kinds has the statuses of errors that are not in wires.
var kinds = map[errs.Kind]statusRow{
	errs.Internal:        {message: 500, admin: 500},
	errs.Invalid:         {message: 400, admin: 400},
	errs.Unauthenticated: {message: 401, admin: 401},
	errs.Denied:          {message: 401, admin: 403},
	errs.NotFound:        {message: 404, admin: 404},
	errs.Conflict:        {message: 409, admin: 409},
	errs.Precondition:    {message: 412, admin: 412},
	errs.TooLarge:        {message: 413, admin: 413},
	errs.Unavailable:     {message: 503, admin: 503},
	errs.Exhausted:       {message: 403, admin: 403},
	errs.Throttled:       {message: 429, admin: 429},
}

// statusError is an error whose status depends on the call, not only on the error.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// WithStatus gives an error a status of its own; nil stays nil.
func WithStatus(code int, err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status: code, err: err}
}

// WithStatusIf gives an error a status of its own if it matches target.
func WithStatusIf(err, target error, code int) error {
	if errors.Is(err, target) {
		return WithStatus(code, err)
	}
	return err
}

// Status implements pipeline.ErrorTable.
func (column Column) Status(err error) int {
	var withStatus *statusError
	if errors.As(err, &withStatus) {
		return withStatus.status
	}
	var refusal *web.Refusal
	if errors.As(err, &refusal) {
		return refusal.Status
	}
	pick := func(w statusRow) int {
		if column == MessageCalls {
			return w.message
		}
		return w.admin
	}
	for _, w := range statusRows {
		if errors.Is(err, w.err) {
			return pick(w)
		}
	}
	return pick(kinds[errs.KindOf(err)])
}

// Write implements pipeline.ErrorTable.
func (Column) Write(c *pipeline.Call, err error, status int) {
	reason := PublicReason(err, status)
	if id := web.RecordOf(c.R.Context()).RequestID; status == http.StatusInternalServerError && id != "" {
		reason += ", request id " + id
	}
	h := c.W.Header()
	switch status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", pipeline.Challenge(Surface, err))
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", pipeline.RetryAfter(err))
	case http.StatusUnsupportedMediaType:
		h.Set("Accept-Encoding", contentCodings) // RFC 9110 §15.5.16
	case http.StatusMethodNotAllowed:
		if c.Allow != "" {
			h.Set("Allow", c.Allow)
		}
	}
	web.Discard(c.R)
	body := append([]byte(`{"reason":`), Quote(reason)...)
	web.WriteBody(c.W, status, contentJSON, append(body, '}'))
}

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	web.RecordOf(r.Context()).Fail(err)
	MessageCalls.Write(&pipeline.Call{W: w, R: r}, err, MessageCalls.Status(err))
}

// PublicReason returns the text of an error for the caller. The text of an internal
// error is fixed. An error about damaged data does not name the file. The error of a message
// that breaks a contract has the values of the message.
func PublicReason(err error, code int) string {
	if code == http.StatusInternalServerError {
		return "internal error"
	}
	if public := engine.PublicError(err); public != nil {
		return public.Error()
	}
	var breach *messaging.ContractError
	if errors.As(err, &breach) {
		return breach.Detail()
	}
	return err.Error()
}

// Quote encodes a JSON string without escaping <, > and &.
func Quote(s string) []byte {
	b, err := web.MarshalJSON(s)
	if err != nil {
		return []byte(`""`)
	}
	return b
}
