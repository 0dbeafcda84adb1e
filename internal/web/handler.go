package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"freshet/internal/errs"
)

// HandlerFunc serves a request or returns why it could not. A handler that has
// begun to write its response must not return an error.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// ErrorWriter renders an error in a surface's own wire form.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Handle adapts h to net/http; what h returns goes to onError and into the
// request's record.
func Handle(h HandlerFunc, onError ErrorWriter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			RecordOf(r.Context()).Fail(err)
			onError(w, r, err)
		}
	})
}

// ErrBodyTooLarge is what ReadBody returns for a body over its limit.
var ErrBodyTooLarge = errs.New(errs.TooLarge, "request body is too large")

// ReadBody reads the whole request body, at most limit bytes of it.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errs.Newf(errs.TooLarge, "%w: %d bytes, limit is %d", ErrBodyTooLarge, r.ContentLength, limit)
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	if n := r.ContentLength; n >= 0 {
		buf := make([]byte, n)
		if _, err := io.ReadFull(body, buf); err != nil {
			return nil, bodyError(err, limit)
		}
		return buf, nil
	}
	buf, err := io.ReadAll(body)
	if err != nil {
		return nil, bodyError(err, limit)
	}
	return buf, nil
}

func bodyError(err error, limit int64) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errs.Newf(errs.TooLarge, "%w: limit is %d bytes", ErrBodyTooLarge, limit)
	}
	return errs.Newf(errs.Invalid, "reading the request body: %w", err)
}

// WriteJSON writes v as JSON with the given content type, leaving <, > and &
// as they are so that schema texts stay byte for byte.
func WriteJSON(w http.ResponseWriter, status int, contentType string, v any) error {
	body, err := MarshalJSON(v)
	if err != nil {
		return err
	}
	WriteBody(w, status, contentType, body)
	return nil
}

// WriteBody writes a complete response with its Content-Length.
func WriteBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; the record's byte count shows it
}

// MarshalJSON is json.Marshal without HTML escaping.
func MarshalJSON(v any) ([]byte, error) {
	var buf trimmedBuffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.trimmed(), nil
}

type trimmedBuffer struct{ b []byte }

func (t *trimmedBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	return len(p), nil
}

// trimmed drops the newline that json.Encoder adds.
func (t *trimmedBuffer) trimmed() []byte {
	if n := len(t.b); n > 0 && t.b[n-1] == '\n' {
		return t.b[:n-1]
	}
	return t.b
}
