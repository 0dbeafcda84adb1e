package tokenapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/throttle"
)

// jsonType has no charset, because clients compare it as a string.
const jsonType = "application/json"

// oauthError is an error response of RFC 6749 §5.2.
type oauthError struct {
	status     int
	code       string
	text       string
	cause      error
	basic      bool          // the client used the Basic scheme, so the response challenges it
	retryAfter time.Duration // how long to wait before a retry
	allow      string        // the allowed method

	challenge string // WWW-Authenticate header for a rejected token
	internal  bool   // the log has the cause; callers must not see it
}

func (p *oauthError) Error() string { return p.code + ": " + p.text }
func (p *oauthError) Unwrap() error { return p.cause }

var (
	errRequest  = errs.New(errs.Invalid, "token request is not valid")
	errAudience = errs.New(errs.Denied, "client is not authorized for this audience")
	errPath     = errs.New(errs.NotFound, "path does not exist")
	errMethod   = errs.New(errs.Invalid, "method is not allowed on this path")
	errRate     = errs.New(errs.Unavailable, "too many token requests")
)

func invalidRequest(text string) error {
	return &oauthError{status: http.StatusBadRequest, code: "invalid_request", text: text, cause: errRequest}
}

func invalidClient(basic bool) error {
	return &oauthError{
		status: http.StatusUnauthorized, code: "invalid_client",
		text:  "unknown client, or wrong or missing client secret",
		cause: identity.ErrInvalidClient, basic: basic,
	}
}

func unsupportedGrant() error {
	return &oauthError{
		status: http.StatusBadRequest, code: "unsupported_grant_type",
		text: "grant_type must be " + strings.Join(grantTypes, ", "), cause: errRequest,
	}
}

// audienceDenied is the same error for an unknown instance and for an instance of another
// organization, so that a client cannot find out which instances exist.
func audienceDenied() error {
	return &oauthError{
		status: http.StatusForbidden, code: "access_denied",
		text: "client is not authorized for this audience; use the base URL of the resource API or " +
			"urn:vendor:messaging:<organization>:<instance>",
		cause: errAudience,
	}
}

// throttled is the error of a limit. what is what the limit counts.
func throttled(what string, over throttle.Exceeded) error {
	return &oauthError{
		status: http.StatusTooManyRequests, code: "too_many_requests",
		text:  "too many " + what + " " + string(over.Scope) + "; " + throttle.TryAgain(over.Wait),
		cause: errRate, retryAfter: over.Wait,
	}
}

// kinds has the responses for errors that are not an oauthError.
var kinds = map[errs.Kind]oauthError{
	errs.Internal:        {status: http.StatusInternalServerError, code: "server_error"},
	errs.Invalid:         {status: http.StatusBadRequest, code: "invalid_request"},
	errs.Unauthenticated: {status: http.StatusUnauthorized, code: "invalid_client"},
	errs.Denied:          {status: http.StatusForbidden, code: "access_denied"},
	errs.NotFound:        {status: http.StatusNotFound, code: "not_found"},
	errs.Conflict:        {status: http.StatusConflict, code: "invalid_request"},
	errs.Precondition:    {status: http.StatusPreconditionFailed, code: "invalid_request"},
	errs.TooLarge:        {status: http.StatusRequestEntityTooLarge, code: "invalid_request"},
	errs.Unavailable:     {status: http.StatusServiceUnavailable, code: "temporarily_unavailable"},
	errs.Exhausted:       {status: http.StatusForbidden, code: "access_denied"},
	errs.Throttled:       {status: http.StatusTooManyRequests, code: "too_many_requests"},
}

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	errorTable{}.Write(&pipeline.Call{W: w, R: r}, err, errorTable{}.Status(err))
}

// errorTable implements pipeline.ErrorTable with oauthErrors and kinds.
type errorTable struct{}

// Status implements pipeline.ErrorTable.
func (errorTable) Status(err error) int { return responseTo(err).status }

// responseTo returns the response to an error.
func responseTo(err error) *oauthError {
	var p *oauthError
	if errors.As(err, &p) {
		return p
	}
	var refusal *web.Refusal
	if errors.As(err, &refusal) {
		return &oauthError{status: refusal.Status, code: "invalid_request", text: refusal.Text}
	}
	row := kinds[errs.KindOf(err)]
	row.text = err.Error()
	if errors.Is(err, web.ErrBodyTimeout) {
		row.status = http.StatusRequestTimeout
	}
	if row.status == http.StatusServiceUnavailable {
		row.retryAfter = time.Second
	}
	row.internal = row.status >= http.StatusInternalServerError && !errors.Is(err, web.ErrStarting) &&
		!errors.Is(err, web.ErrNoMajority)
	return &row
}

// Write implements pipeline.ErrorTable. All errors of the surface are written here.
func (errorTable) Write(c *pipeline.Call, err error, status int) {
	p, rec := responseTo(err), web.RecordOf(c.R.Context())
	text := p.text
	if p.internal {
		text = "internal error, request id " + rec.RequestID
	}
	h := c.W.Header()
	noStore(h)
	if p.basic {
		h.Set("WWW-Authenticate", `Basic realm="freshet"`)
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", pipeline.RetryAfterDelay(p.retryAfter))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	body := struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{p.code, text}
	if err := web.WriteJSON(c.W, status, jsonType, body); err != nil {
		rec.Fail(err)
	}
}

// noStore keeps tokens and errors about them out of caches (RFC 6749 §5.1).
func noStore(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
}

func unknownPath(http.ResponseWriter, *http.Request) error {
	return &oauthError{
		status: http.StatusNotFound, code: "not_found", text: "path does not exist",
		cause: errPath,
	}
}

func wrongMethod(allow string) web.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) error {
		return &oauthError{
			status: http.StatusMethodNotAllowed, code: "invalid_request",
			text: "method is not allowed on this path; use " + allow, cause: errMethod, allow: allow,
		}
	}
}
