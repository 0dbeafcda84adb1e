package messageapi

import (
	"bytes"
	"encoding/base64"
	"slices"
	"unicode/utf8"
)

// scanBatch decodes the body of a batch produce in one pass, an order of magnitude
// faster than encoding/json. It supports the bodies that nearly all clients send: names
// spelled as in the OpenAPI document without duplicates, strings without escapes, and
// integers. It returns false for every other body, valid or not; the caller then uses
// encoding/json, which supports all of JSON and reports errors. FuzzScanBatch checks
// that both decode the same.
//
// The result refers to b, which must not change while body is in use.
func scanBatch(b []byte, body *batchBody) bool {
	s, first := scanner{b: b}, 0
	s.object(func(name string) bool {
		switch name {
		case "producerName":
			body.ProducerName = s.text()
		case "encoding":
			body.Encoding = encoding(s.text())
		case "messages":
			s.array(func() bool {
				switch n := len(body.Messages); n {
				case maxBatch:
					return false
				case 0:
					first = s.at
				case 1: // assumes that the others are about as long as the first
					more := (len(s.b) - s.at) / max(s.at-first, 1)
					body.Messages = slices.Grow(body.Messages, min(more+1, maxBatch))
				}
				body.Messages = append(body.Messages, batchMessage{})
				return s.message(&body.Messages[len(body.Messages)-1])
			})
		default:
			return false
		}
		return true
	})
	s.space()
	return !s.failed && s.at == len(s.b)
}

func (s *scanner) message(m *batchMessage) bool {
	s.object(func(name string) bool {
		switch name {
		case "payload":
			m.Payload = s.raw()
		case "encoding":
			m.Encoding = encoding(s.text())
		case "nullValue":
			m.NullValue = s.boolean()
		case "key":
			key := s.text()
			m.Key = &key
		case "keyEncoding":
			m.KeyEncoding = s.text()
		case "properties":
			m.Properties = make(map[string]string)
			s.object(func(name string) bool {
				m.Properties[name] = s.text()
				return true
			})
		case "eventTime":
			m.EventTime = s.number()
		case "sequenceId":
			n := s.number()
			if n < 0 {
				return false
			}
			sequence := uint64(n)
			m.SequenceID = &sequence
		case "schemaVersion":
			version := s.number()
			m.SchemaVersion = &version
		case "deliverAt":
			m.DeliverAt = s.number()
		case "deliverAfterMillis":
			after := s.number()
			m.DeliverAfterMillis = &after
		case "idempotencyKey":
			m.IdempotencyKey = s.text()
		default: // also for headers, which have an encoding of their own
			return false
		}
		return true
	})
	return !s.failed
}

// scanner parses JSON. Once failed is set, its results are invalid.
type scanner struct {
	b      []byte
	at     int
	failed bool
}

func (s *scanner) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// accept skips c if it is the next character.
func (s *scanner) accept(c byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.failed = true
	}
}

// object calls each at the value of every member. Duplicate names are a failure.
func (s *scanner) object(each func(name string) bool) {
	s.expect('{')
	if s.failed || s.accept('}') {
		return
	}
	var buffer [16]string
	seen := buffer[:0]
	for !s.failed {
		name := s.text()
		s.expect(':')
		// The linear search is slow for many names; encoding/json decodes those.
		if s.failed || len(seen) == cap(seen) || slices.Contains(seen, name) || !each(name) {
			s.failed = true
			return
		}
		seen = append(seen, name)
		if s.accept('}') {
			return
		}
		s.expect(',')
	}
}

// array calls each at every value.
func (s *scanner) array(each func() bool) {
	s.expect('[')
	if s.failed || s.accept(']') {
		return
	}
	for !s.failed {
		if !each() {
			s.failed = true
			return
		}
		if s.accept(']') {
			return
		}
		s.expect(',')
	}
}

// quoted returns the inside of a string. An escape in it is a failure.
func (s *scanner) quoted() []byte {
	s.expect('"')
	if s.failed {
		return nil
	}
	end := bytes.IndexByte(s.b[s.at:], '"')
	if end < 0 {
		s.failed = true
		return nil
	}
	inner := s.b[s.at : s.at+end]
	s.at += end + 1
	if bytes.IndexByte(inner, '\\') >= 0 {
		s.failed = true
	}
	return inner
}

func (s *scanner) text() string {
	inner := s.quoted()
	if s.failed || !plain(inner) {
		s.failed = true
		return ""
	}
	return string(inner)
}

// plain reports whether encoding/json decodes the inside of a string unchanged.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(b)
}

func (s *scanner) boolean() bool {
	s.space()
	for _, word := range []string{"true", "false"} {
		if bytes.HasPrefix(s.b[s.at:], []byte(word)) {
			s.at += len(word)
			return word == "true"
		}
	}
	s.failed = true
	return false
}

// number parses an integer of at most 18 digits.
func (s *scanner) number() int64 {
	s.space()
	negative := s.at < len(s.b) && s.b[s.at] == '-'
	if negative {
		s.at++
	}
	from, n := s.at, int64(0)
	for s.at < len(s.b) && s.b[s.at]-'0' <= 9 {
		if n = n*10 + int64(s.b[s.at]-'0'); s.at-from == 18 {
			s.failed = true
			return 0
		}
		s.at++
	}
	if digits := s.at - from; digits == 0 || digits > 1 && s.b[from] == '0' || s.at < len(s.b) &&
		bytes.IndexByte([]byte(".eE"), s.b[s.at]) >= 0 {
		s.failed = true
	}
	if negative {
		return -n
	}
	return n
}

// raw returns the JSON of a value: a string without escapes, an object or an array. It
// does not validate the inside; decoding the payload does.
func (s *scanner) raw() payloadJSON {
	s.space()
	from := s.at
	switch {
	case s.at == len(s.b):
		s.failed = true
	case s.b[s.at] == '"':
		s.quoted()
	case s.b[s.at] == '{' || s.b[s.at] == '[':
		s.skip()
	default:
		s.failed = true
	}
	return s.b[from:s.at]
}

// skip skips an object or array by counting brackets. The caller must validate the
// skipped JSON.
func (s *scanner) skip() {
	for depth := 0; s.at < len(s.b); {
		switch s.b[s.at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return
			}
		case '"':
			s.at++
			for s.at < len(s.b) && s.b[s.at] != '"' {
				if s.b[s.at] == '\\' {
					s.at++
				}
				s.at++
			}
		}
		s.at++
	}
	s.at, s.failed = min(s.at, len(s.b)), true
}

// decodeInto decodes the base64 of a JSON string into the front of room and removes that
// part from room. It returns false if the caller must use the general decoder.
func decodeInto(buffer *[]byte, raw payloadJSON) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' || bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') >= 0 {
		return nil, false // the base64 decoder would ignore line breaks, which are invalid in JSON
	}
	inner := raw[1 : len(raw)-1]
	if base64.StdEncoding.DecodedLen(len(inner)) > len(*buffer) {
		return nil, false
	}
	n, err := base64.StdEncoding.Decode(*buffer, inner)
	if err != nil {
		return nil, false
	}
	payload := (*buffer)[:n:n]
	*buffer = (*buffer)[n:]
	return payload, true
}
