package brokerhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
)

var (
	errBody  = errs.New(errs.Invalid, "request body is not valid")
	errQuery = errs.New(errs.Invalid, "query is not valid")
)

// BadBody returns an error about a request body.
func BadBody(format string, args ...any) error {
	return errs.Newf(errs.Invalid, "%w: %w", errBody, fmt.Errorf(format, args...))
}

// BadJSON returns an error about a request body for an error of the JSON decoder.
func BadJSON(err error) error { return BadBody("%s", web.DecodeText(err.Error())) }

// BadQuery returns an error about a query parameter.
func BadQuery(format string, args ...any) error {
	return errs.Newf(errs.Invalid, "%w: %w", errQuery, fmt.Errorf(format, args...))
}

// Body reads the whole body and decompresses it if it has a Content-Encoding. A body of
// more than limit bytes, compressed or not, is an error.
func (c *Call) Body(limit int64) ([]byte, error) {
	if c.R.ContentLength == 0 {
		return nil, nil
	}
	r, err := decoded(c.R, limit)
	if err != nil {
		return nil, err
	}
	return c.ReadBody(r, limit)
}

// Decode decodes a JSON body into v. It returns false if the body is empty, white space
// or null: some clients send these instead of no body.
func (c *Call) Decode(v any, limit int64) (bool, error) {
	b, err := c.Body(limit)
	if err != nil {
		return false, err
	}
	return DecodeJSON(b, v)
}

// DecodeJSON is Decode for a body that was already read.
func DecodeJSON(b []byte, v any) (bool, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || string(b) == "null" {
		return false, nil
	}
	in := json.NewDecoder(bytes.NewReader(b))
	if err := in.Decode(v); err != nil {
		if errors.Is(err, messaging.ErrBatch) {
			return false, err
		}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, BadBody("not valid JSON: %w", err)
		}
		return false, BadJSON(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return false, BadBody("more than one JSON value")
	}
	return true, nil
}

// ParseID parses one message id: in base64 or string form, bare or as a JSON string.
// Clients send all of these (docs/spec/messages.md#acknowledge).
func ParseID(b []byte) (names.MessageID, error) {
	text := strings.TrimSpace(string(b))
	if strings.HasPrefix(text, `"`) {
		var s string
		if len(text) > 1 && strings.IndexByte(text, '\\') < 0 && strings.IndexByte(text[1:], '"') == len(text)-2 {
			s = text[1 : len(text)-1]
		} else if err := json.Unmarshal([]byte(text), &s); err != nil {
			return names.MessageID{}, badID(names.ErrMessageID)
		}
		text = strings.TrimSpace(s)
	}
	var id names.MessageID
	var err error
	if strings.IndexByte(text, ':') >= 0 {
		id, err = names.ParseMessageID(text)
	} else {
		id, err = names.DecodeMessageID(text)
	}
	if err != nil {
		return id, badID(err)
	}
	return id, nil
}

func badID(err error) error {
	return errs.Newf(errs.Invalid, "%w: %w", messaging.ErrMessageID, err)
}
