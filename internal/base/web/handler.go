package web

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// HandlerFunc serves a request or returns an error. A handler that has started its
// response must not return an error.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// ErrorWriter responds with an error in the form of a surface.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Handle adapts h to net/http. It passes an error of h to onError and adds it to the
// request's record.
func Handle(h HandlerFunc, onError ErrorWriter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			RecordOf(r.Context()).Fail(err)
			onError(w, r, err)
		}
	})
}

// WriteJSON writes v as JSON with the given content type. It does not escape <, > and &,
// so that schema texts stay unchanged byte for byte.
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
	_, _ = w.Write(body) // the client may have disconnected; the record's byte count shows it
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
