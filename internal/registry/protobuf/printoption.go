package protobuf

import (
	"strings"
	"unicode/utf8"
)

// bracketed prints the options of a field, enum value or extension range: a single option on
// the same line, several options on one line each.
func (p *printer) bracketed(options []option) {
	switch len(options) {
	case 0:
		return
	case 1:
		p.b.WriteString(" [")
		p.option(options[0])
		p.b.WriteByte(']')
		return
	}
	p.b.WriteString(" [\n")
	p.depth++
	for i, o := range options {
		p.indent()
		p.option(o)
		p.comma(i, len(options))
	}
	p.depth--
	p.indent()
	p.b.WriteByte(']')
}

func (p *printer) comma(i, n int) {
	if i < n-1 {
		p.b.WriteByte(',')
	}
	p.b.WriteByte('\n')
}

func (p *printer) option(o option) {
	p.b.WriteString(o.formattedName())
	p.b.WriteString(" = ")
	p.value(o.val)
}

func (o option) formattedName() string {
	parts := make([]string, len(o.name))
	for i, part := range o.name {
		parts[i] = part.name
		if part.ext {
			parts[i] = "(" + part.name + ")"
		}
	}
	return strings.Join(parts, ".")
}

func (p *printer) value(v value) {
	switch v.kind {
	case valueString:
		p.b.WriteString(quote(v.text))
	case valueList:
		p.b.WriteString("[\n")
		p.depth++
		for i, e := range v.list {
			p.indent()
			p.value(e)
			p.comma(i, len(v.list))
		}
		p.depth--
		p.indent()
		p.b.WriteByte(']')
	case valueMessage:
		p.b.WriteString("{\n")
		p.depth++
		for i, f := range v.fields {
			p.indent()
			p.b.WriteString(f.key() + ": ")
			p.value(f.val)
			p.comma(i, len(v.fields))
		}
		p.depth--
		p.indent()
		p.b.WriteByte('}')
	default:
		p.b.WriteString(v.text)
	}
}

var escapes = map[byte]string{
	'"': `\"`, '\'': `\'`, '\\': `\\`,
	'\a': `\a`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`,
}

// quote returns a string literal for the bytes of s. It prints text unchanged, and other
// bytes as octal escapes, which have a fixed length.
func quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch escape, special := escapes[s[i]]; {
		case special:
			b.WriteString(escape)
		case r == utf8.RuneError, s[i] < ' ', s[i] == 0x7f:
			for _, c := range []byte(s[i : i+size]) {
				b.WriteString(octal(c))
			}
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	b.WriteByte('"')
	return b.String()
}

func octal(c byte) string { return string([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7}) }
