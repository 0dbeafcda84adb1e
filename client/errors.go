package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What an Error can be, for errors.Is. An Error is at most one of them.
var (
	// ErrNotFound: the thing, or something that the call names, is not there (404).
	ErrNotFound = errors.New("not found")
	// ErrDenied: the caller is known and lacks a permission (403; on messages 401
	// with insufficient_scope).
	ErrDenied = errors.New("denied")
	// ErrUnauthenticated: there is no token, or it is not good (401).
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrConflict: it is there already, has changed meanwhile, is not empty, or the
	// lease of a message has ended; on schemas, the schema is not compatible (409).
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the call or what it carries is not valid (400, 406, 412, 415, 422).
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: the payload or the call is too large (413).
	ErrTooLarge = errors.New("too large")
	// ErrQuota: the organization's quota is used up (403, exceeded quota). It is not
	// repeated; ErrThrottled is what passes by waiting.
	ErrQuota = errors.New("quota exceeded")
	// ErrThrottled: too many calls in a short time, also after repetitions (429).
	ErrThrottled = errors.New("too many requests")
	// ErrUnavailable: the server is busy, starting, stopping or cannot be reached,
	// also after repetitions (502, 503, 504, and no answer at all).
	ErrUnavailable = errors.New("unavailable")
)

// Error is a refusal by the server, whichever of its interfaces it came from.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the registry's error_code, such as 40401; elsewhere the status.
	Code int
	// Reason is one word for programs: NotFound or AlreadyExists of the resource
	// API, invalid_client of the token endpoint; empty elsewhere.
	Reason string
	// Message is a sentence for people.
	Message string
	// RequestID is what the server's log has the call under.
	RequestID string
	// RetryAfter is how long the server asked to wait; zero when it did not say.
	RetryAfter time.Duration

	denied bool
}

// Error is the message with what is needed to find the call in the server's log.
func (e *Error) Error() string {
	message := e.Message
	if message == "" {
		message = "the server answered " + strconv.Itoa(e.Status) + " " + http.StatusText(e.Status)
	}
	if e.Status >= http.StatusInternalServerError && e.RequestID != "" {
		return fmt.Sprintf("%s (status %d, request id %s)", message, e.Status, e.RequestID)
	}
	return fmt.Sprintf("%s (status %d)", message, e.Status)
}

// Is says whether the Error is one of the package's sentinels.
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

// unreachable is a call that got no answer.
type unreachable struct{ err error }

func (u *unreachable) Error() string { return "the server does not answer: " + u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }

// Is makes it ErrUnavailable.
func (u *unreachable) Is(target error) bool { return target == ErrUnavailable }

// maxErrorBody is how much of a refusal is read.
const maxErrorBody = 1 << 20

// newError reads a refusal. The body is not closed.
func newError(response *http.Response) *Error {
	e := &Error{
		Status: response.StatusCode, Code: response.StatusCode,
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response.Header),
		denied:     strings.Contains(response.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`),
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return e // the status says what matters
	}
	e.parse(text)
	return e
}

// parse fills in what the body says, in the form of any of the surfaces.
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
		if len(text) <= 1024 { // a proxy, perhaps
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
		e.Reason, e.Message = body.Error, body.Description
		if e.Message == "" {
			e.Message = body.Error
		}
	default: // messages and administration
		e.Message = body.Reason
		if e.Message == "" {
			e.Message = body.Message
		}
	}
}

// retryAfter reads the header in seconds or as a date.
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
