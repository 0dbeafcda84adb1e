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
	errBody  = errs.New(errs.Invalid, "the request body is not valid")
	errQuery = errs.New(errs.Invalid, "the query is not valid")
)

// BadBody says what is wrong with a body.
func BadBody(format string, args ...any) error {
	return errs.Newf(errs.Invalid, "%w: %w", errBody, fmt.Errorf(format, args...))
}

// BadJSON says what a decoder found wrong with a body.
func BadJSON(err error) error { return BadBody("%s", web.DecodeText(err.Error())) }

// BadQuery says what is wrong with a query.
func BadQuery(format string, args ...any) error {
	return errs.Newf(errs.Invalid, "%w: %w", errQuery, fmt.Errorf(format, args...))
}

// Body reads the whole body, at most limit bytes of it, and takes off what
// Content-Encoding says was put around it.
func (c *Call) Body(limit int64) ([]byte, error) {
	if c.R.ContentLength == 0 {
		return nil, nil
	}
	r, err := decoded(c.R, limit)
	if err != nil {
		return nil, err
	}
	b, held, err := c.Options.Limiter.ReadBody(r, c.Who(), limit)
	c.held += held
	return b, err
}

// Decode reads a JSON body into v. It reports false when there is none: empty,
// blank or null, as some clients send where they mean nothing.
func (c *Call) Decode(v any, limit int64) (bool, error) {
	b, err := c.Body(limit)
	if err != nil {
		return false, err
	}
	return DecodeJSON(b, v)
}

// DecodeJSON does so with a body that was read before.
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
			return false, BadBody("it is not JSON: %w", err)
		}
		return false, BadJSON(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return false, BadBody("there is more than one JSON value")
	}
	return true, nil
}

// ParseID reads one message id: base64 or string form, bare or as a JSON
// string. Clients send all of these (docs/spec/messages.md#acknowledge).
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
