package jsonschema

import (
	"encoding/json"
	"strconv"
	"strings"
)

// emit prints v compactly: members in document order, numbers as written, and
// of all characters only those escaped that JSON requires (never <, > or &).
func emit(v *value) string {
	var b strings.Builder
	emitTo(&b, v)
	return b.String()
}

func emitTo(b *strings.Builder, v *value) {
	switch v.kind {
	case nullValue:
		b.WriteString("null")
	case boolValue:
		if v.truth {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	case numberValue:
		b.WriteString(v.text)
	case stringValue:
		emitString(b, v.text)
	case arrayValue:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			emitTo(b, item)
		}
		b.WriteByte(']')
	case objectValue:
		b.WriteByte('{')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			emitString(b, v.keys[i])
			b.WriteByte(':')
			emitTo(b, item)
		}
		b.WriteByte('}')
	}
}

func emitString(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	b.WriteByte('"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(s[start:i])
		start = i + 1
		b.WriteByte('\\')
		switch c {
		case '"', '\\':
			b.WriteByte(c)
		case '\b':
			b.WriteByte('b')
		case '\t':
			b.WriteByte('t')
		case '\n':
			b.WriteByte('n')
		case '\f':
			b.WriteByte('f')
		case '\r':
			b.WriteByte('r')
		default:
			b.WriteString("u00")
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
}

// plain turns v into the maps and slices that the validation library reads.
func plain(v *value) any {
	switch v.kind {
	case boolValue:
		return v.truth
	case numberValue:
		return plainNumber(v.text)
	case stringValue:
		return v.text
	case arrayValue:
		items := make([]any, len(v.items))
		for i, item := range v.items {
			items[i] = plain(item)
		}
		return items
	case objectValue:
		members := make(map[string]any, len(v.items))
		for i, item := range v.items {
			members[v.keys[i]] = plain(item)
		}
		return members
	}
	return nil
}

// plainNumber keeps a literal exact unless its expansion would cost more than
// any number means: the library reckons in big.Rat, where a large exponent is
// as many digits. Beyond maxScale a number becomes the edge of the range.
func plainNumber(literal string) json.Number {
	const maxScale = 400
	d := parseDecimal(literal)
	if d.exponent <= maxScale && d.exponent >= -maxScale && len(d.digits) <= maxScale {
		return json.Number(literal)
	}
	d.digits = d.digits[:min(len(d.digits), maxScale)]
	d.exponent = min(max(d.exponent, -maxScale), maxScale)
	sign := ""
	if d.negative {
		sign = "-"
	}
	return json.Number(sign + "0." + d.digits + "e" + strconv.FormatInt(d.exponent, 10))
}
