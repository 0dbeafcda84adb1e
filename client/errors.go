package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kinds of errors, for errors.Is. An Error matches at most one of them.
var (
	// ErrNotFound: the object of the call, or an object that it refers to, does not exist
	// (404).
	ErrNotFound = errors.New("not found")
	// ErrDenied: the caller lacks a permission (403; for messages 401 with
	// insufficient_scope).
	ErrDenied = errors.New("denied")
	// ErrUnauthenticated: the token is missing or not valid (401).
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrConflict: the object already exists, has been changed, is not empty, or the lease
	// of a message has expired; for schemas, the schema is not compatible (409).
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the call or its content is not valid (400, 406, 412, 415, 422).
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: the payload or the call is too large (413).
	ErrTooLarge = errors.New("too large")
	// ErrQuota: the organization's quota is used up (403, exceeded quota). The client does
	// not retry it, in contrast to ErrThrottled.
	ErrQuota = errors.New("quota exceeded")
	// ErrThrottled: too many calls in a short time, even after retries (429).
	ErrThrottled = errors.New("too many requests")
	// ErrUnavailable: the server is busy, starting, stopping or not reachable, even after
	// retries (502, 503, 504, and no response).
	ErrUnavailable = errors.New("unavailable")
)

// Error is an error response of the server.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the registry's error_code, such as 40401; elsewhere the status.
	Code int
	// Reason is a word for programs: NotFound or AlreadyExists from the resource API,
	// invalid_client from the token endpoint; empty elsewhere.
	Reason string
	// Message is a text for people.
	Message string
	// RequestID identifies the call in the server's log.
	RequestID string
	// RetryAfter is the Retry-After of the response; zero without one.
	RetryAfter time.Duration

	denied bool
}

// Error returns the message and the status, and for failures of the server the request id.
func (e *Error) Error() string {
	message := cmp.Or(e.Message, "server responded "+strconv.Itoa(e.Status)+" "+http.StatusText(e.Status))
	if e.Status >= http.StatusInternalServerError && e.RequestID != "" {
		return fmt.Sprintf("%s (status %d, request id %s)", message, e.Status, e.RequestID)
	}
	return fmt.Sprintf("%s (status %d)", message, e.Status)
}

// Is reports whether the Error matches a sentinel of the package.
func (e *Error) Is(target error) bool { return target == e.kind() }

func (e *Error) kind() error {
	switch e.Status {
	case http.StatusUnauthorized:
		if e.denied {
			return ErrDenied
		}
		return ErrUnauthenticated
	case http.StatusForbidden:
		if e.Code == 40302 || strings.Contains(e.Message, "exceeded quota") {
			return ErrQuota
		}
		return ErrDenied
	case http.StatusNotFound, http.StatusGone:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	case http.StatusRequestEntityTooLarge:
		return ErrTooLarge
	case http.StatusBadRequest, http.StatusNotAcceptable, http.StatusPreconditionFailed,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return ErrInvalid
	case http.StatusTooManyRequests:
		return ErrThrottled
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ErrUnavailable
	}
	return nil
}

// unreachable is the error of a call without a response.
type unreachable struct{ err error }

func (u *unreachable) Error() string { return "server does not respond: " + u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }

// Is makes the error an ErrUnavailable.
func (u *unreachable) Is(target error) bool { return target == ErrUnavailable }

// maxErrorBody is the maximum size of an error response that is read.
const maxErrorBody = 1 << 20

// newError reads an error response. It does not close the body.
func newError(response *http.Response) *Error {
	e := &Error{
		Status: response.StatusCode, Code: response.StatusCode,
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response.Header),
		denied:     strings.Contains(response.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`),
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return e // the status is enough
	}
	e.parse(text)
	return e
}

// parse sets the fields from the body, which has the format of one of the surfaces.
func (e *Error) parse(text []byte) {
	var body struct {
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Message string `json:"message"`

		ErrorCode int `json:"error_code"`

		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(text, &body) != nil {
		if len(text) <= 1024 { // probably the error of a proxy
			e.Message = strings.TrimSpace(string(text))
		}
		return
	}
	switch {
	case body.Kind == "Status": // resources
		e.Reason, e.Message = body.Reason, body.Message
	case body.ErrorCode != 0: // registry
		e.Code, e.Message = body.ErrorCode, body.Message
	case body.Error != "": // tokens
		e.Reason, e.Message = body.Error, cmp.Or(body.Description, body.Error)
	default: // messages and administration
		e.Message = cmp.Or(body.Reason, body.Message)
	}
}

// retryAfter returns the Retry-After header, which contains seconds or a date.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 86_400)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
