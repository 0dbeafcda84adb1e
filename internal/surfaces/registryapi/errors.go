package registryapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/base/workpool"
	"freshet/internal/identity"
	"freshet/internal/registry/schemas"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/pipeline"
)

var (
	errNoEndpoint = errs.New(errs.NotFound, "Not found")
	errBadID      = errs.New(errs.NotFound, "HTTP 404 Not Found")
	errNotJSON    = errs.New(errs.Invalid, "Cannot decode request")
	errBody       = errs.New(errs.Invalid, "request body is not valid")
	errDenied     = errs.New(errs.Denied, "permission is missing")
)

// Numeric codes without a sentinel.
const (
	codeStore   = 50001
	codeTimeout = 50002

	codeQuota     = 40302
	codeThrottled = 42901
)

// challenges are the supported schemes. Each has a header of its own, because not every
// client can parse several challenges in one header.
var challenges = []string{`Bearer realm="schema registry"`, `Basic realm="schema registry", charset="UTF-8"`}

// code maps a sentinel to a numeric error code. The HTTP status is its first three
// digits.
type code struct {
	sentinel *errs.Error
	number   int
}

// codes is the surface's one table from errors to numeric codes
// (docs/spec/registry.md#errors).
var codes = []code{
	{schemas.ErrSubjectNotFound, 40401},
	{schemas.ErrVersionNotFound, 40402},
	{schemas.ErrSchemaNotFound, 40403},
	{schemas.ErrSubjectSoftDeleted, 40404},
	{schemas.ErrSubjectNotSoftDeleted, 40405},
	{schemas.ErrVersionSoftDeleted, 40406},
	{schemas.ErrVersionNotSoftDeleted, 40407},
	{schemas.ErrIncompatible, 409},
	{schemas.ErrInvalidSchema, 42201},
	{schemas.ErrInvalidVersion, 42202},
	{schemas.ErrInvalidLevel, 42203},
	{schemas.ErrInvalidMode, 42204},
	{schemas.ErrNotPermitted, 42205},
	{schemas.ErrReferenceExists, 42206},
	{schemas.ErrInvalidSubject, 42208},
	{schemas.ErrImport, 422},
	{errNoEndpoint, 404},
	{errBadID, 404},
	{errNotJSON, 400},
	{errBody, 422},
	{errNotAcceptable, 412},
	{errMediaType, 415},
	{errNoCredentials, 401},
	{errDenied, 403},
	{web.ErrBodyTooLarge, 413},
	{workpool.ErrTooCostly, 42201},
	{workpool.ErrBusy, 503},
	{web.ErrBodyTimeout, 408},
	{web.ErrBusy, 503},
	{web.ErrStarting, 503},
	{web.ErrNoMajority, 503},
	{identity.ErrNotCurrent, 503},
}

// kinds has the codes of errors that are not in codes.
var kinds = map[errs.Kind]int{
	errs.Invalid:         422,
	errs.Unauthenticated: 401,
	errs.Denied:          403,
	errs.NotFound:        404,
	errs.Conflict:        409,
	errs.Precondition:    codeStore,
	errs.TooLarge:        413,
	errs.Unavailable:     codeStore,
	errs.Exhausted:       codeQuota,
	errs.Throttled:       codeThrottled,
	errs.Internal:        codeStore,
}

// numberOf returns the numeric code and the text of an error.
func numberOf(err error, requestID string) (int, string) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return codeTimeout, "The registry did not respond in time"
	}
	var refusal *web.Refusal
	if errors.As(err, &refusal) {
		return refusal.Status, refusal.Text
	}
	if public := engine.PublicError(err); public != nil {
		return http.StatusServiceUnavailable, public.Error()
	}
	for _, c := range codes {
		if errors.Is(err, c.sentinel) {
			return c.number, err.Error()
		}
	}
	number := kinds[errs.KindOf(err)]
	if errs.KindOf(err) == errs.Internal || errs.KindOf(err) == errs.Precondition {
		// The log has the cause; callers must not see it.
		return number, "Error in the backend data store; request id " + requestID
	}
	return number, err.Error()
}

// statusOf returns the HTTP status of a code: its first three digits.
func statusOf(number int) int {
	for number > 999 {
		number /= 10
	}
	return number
}

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	errorTable{}.Write(&pipeline.Call{W: w, R: r}, err, errorTable{}.Status(err))
}

// errorTable implements pipeline.ErrorTable with codes and kinds.
type errorTable struct{}

// Status implements pipeline.ErrorTable.
func (errorTable) Status(err error) int {
	number, _ := numberOf(err, "")
	return statusOf(number)
}

// Write implements pipeline.ErrorTable, in the form of docs/spec/registry.md#errors.
func (errorTable) Write(c *pipeline.Call, err error, status int) {
	number, text := numberOf(err, web.RecordOf(c.R.Context()).RequestID)
	media, ok := accept(c.R.Header["Accept"])
	if !ok {
		media = mediaV1
	}
	h := c.W.Header()
	// Clients may cache a 404, but proxies must not.
	h["Cache-Control"] = noCache
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", pipeline.RetryAfter(err))
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = challenges
	case http.StatusForbidden:
		var denied *denial
		if errors.As(err, &denied) {
			h.Set("WWW-Authenticate", `Bearer realm="schema registry", error="insufficient_scope", scope="`+
				string(denied.permission)+`"`)
		}
	}
	web.Discard(c.R)
	body := make([]byte, 0, len(text)+64)
	body = append(body, `{"error_code":`...)
	body = strconv.AppendInt(body, int64(number), 10)
	body = append(body, `,"message":`...)
	body = schemas.AppendQuoted(body, text)
	body = append(body, '}')
	web.WriteBody(c.W, status, media, body)
}
