package registryapi

import (
	"strings"
	"unicode/utf8"
)

// plainRequest is a fast decoder for the most frequent body, which serializers send: one
// object with a schema and optionally a schemaType, both strings. For every other body
// ok is false, and the caller uses encoding/json, which takes several times as long; see
// BenchmarkHandler/register_known.
func plainRequest(body []byte) (req schemaRequest, ok bool) {
	p := plainReader{body: body}
	if !p.accept('{') {
		return req, false
	}
	for more := true; more; more = p.accept(',') {
		name, ok := p.text()
		if !ok || !p.accept(':') {
			return req, false
		}
		value, ok := p.text()
		switch {
		case !ok:
			return req, false
		case name == "schema" && req.Schema == nil:
			req.Schema = &value
		case name == "schemaType" && req.SchemaType == "":
			req.SchemaType = value
		default:
			return req, false
		}
	}
	if !p.accept('}') {
		return req, false
	}
	p.skipSpace()
	return req, p.at == len(body)
}

// plainReader parses JSON without numbers, literals, arrays and nesting.
type plainReader struct {
	body []byte
	at   int
}

func (p *plainReader) skipSpace() {
	for p.at < len(p.body) && strings.IndexByte(" \t\r\n", p.body[p.at]) >= 0 {
		p.at++
	}
}

// next reports whether c is the next character.
func (p *plainReader) next(c byte) bool { return p.at < len(p.body) && p.body[p.at] == c }

// accept skips white space and c, if c follows.
func (p *plainReader) accept(c byte) bool {
	p.skipSpace()
	if !p.next(c) {
		return false
	}
	p.at++
	return true
}

// text parses a string. It returns false for \u escapes and invalid UTF-8.
func (p *plainReader) text() (string, bool) {
	if !p.accept('"') {
		return "", false
	}
	var text strings.Builder
	for {
		chunk := p.unescaped()
		switch {
		case p.next('"') && text.Len() == 0:
			p.at++
			return string(chunk), utf8.Valid(chunk)
		case p.next('"'):
			p.at++
			text.Write(chunk)
			return text.String(), utf8.ValidString(text.String())
		case !p.next('\\') || p.at+1 == len(p.body):
			return "", false // a control character, or the end
		case text.Len() == 0:
			text.Grow(len(chunk) + len(p.body) - p.at)
		}
		c := escaped[p.body[p.at+1]]
		if c == 0 {
			return "", false
		}
		text.Write(chunk)
		text.WriteByte(c)
		p.at += 2
	}
}

// unescaped skips the bytes of a string that are not escaped, and returns them.
func (p *plainReader) unescaped() []byte {
	from := p.at
	for p.at < len(p.body) {
		if c := p.body[p.at]; c < ' ' || c == '"' || c == '\\' {
			break
		}
		p.at++
	}
	return p.body[from:p.at]
}

// escaped maps the character after a backslash to its value.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
