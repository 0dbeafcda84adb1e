package schemas

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"
)

// canonAlgorithm is the version of the rules for printing schemas. It is stored
// with each schema. A stored text is never printed again: when the rules change,
// this number increases, and old schemas keep their text and their identity.
const canonAlgorithm = 2

// Schema is a stored schema. It is immutable, and all versions that have it share
// it.
//
// It keeps only the encoded response to a read by id. The text is a part of this
// response, so that a schema is in memory once.
type Schema struct {
	ID         int32
	Type       Type
	References []Reference

	algorithm uint8
	unchecked bool // imported without validation
	sum       identity
	body      []byte // {"schema":"..."[,"schemaType":"..."][,"references":[...]]}
	textEnd   int    // offset of the end of the quoted text in body

	recordNames atomic.Pointer[[]string] // set by the first call of RecordNames
}

const bodyStart = len(`{"schema":`)

// identity is the SHA-256 of the language, the text and the references. Two schemas
// with the same identity are the same schema.
type identity [32]byte

func identityOf(t Type, text string, refs []Reference) identity {
	b := make([]byte, 0, 16+len(text)+128*len(refs))
	write := func(s string) {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(t))
	write(text)
	for _, ref := range refs {
		write(ref.Name)
		write(ref.Subject)
		b = binary.LittleEndian.AppendUint64(b, uint64(int64(ref.Version)))
	}
	return sha256.Sum256(b)
}

func newSchema(id int32, t Type, text string, refs []Reference) *Schema {
	s := &Schema{ID: id, Type: t, References: refs, algorithm: canonAlgorithm, sum: identityOf(t, text, refs)}
	s.body = make([]byte, 0, len(text)+len(text)/8+64+128*len(refs))
	s.body = append(s.body, `{"schema":`...)
	s.body = appendQuoted(s.body, text)
	s.textEnd = len(s.body)
	s.body = appendAttributes(s.body, t, refs)
	s.body = append(s.body, '}')
	if cap(s.body)-len(s.body) > len(s.body)/8 {
		s.body = append(make([]byte, 0, len(s.body)), s.body...)
	}
	return s
}

// appendAttributes appends the optional members: schemaType unless it is AVRO, and
// references unless there are none.
func appendAttributes(b []byte, t Type, refs []Reference) []byte {
	if t != Avro {
		b = append(b, `,"schemaType":"`...)
		b = append(b, t.String()...)
		b = append(b, '"')
	}
	if len(refs) == 0 {
		return b
	}
	b = append(b, `,"references":[`...)
	for i, ref := range refs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendQuoted(b, ref.Name)
		b = append(b, `,"subject":`...)
		b = appendQuoted(b, ref.Subject)
		b = append(b, `,"version":`...)
		b = strconv.AppendInt(b, int64(ref.Version), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

// Body returns the response to a read by id. The caller must not change it.
func (s *Schema) Body() []byte { return s.body }

// Text returns the schema text.
func (s *Schema) Text() string { return unquote(s.body[bodyStart:s.textEnd]) }

// Tag returns a short hash of the content, for caches.
func (s *Schema) Tag() string { return hex.EncodeToString(s.sum[:8]) }

// Version is a version of a subject.
type Version struct {
	Subject string
	Version int32
	Deleted bool
	Schema  *Schema
}

// AppendJSON appends the response to a read of the version.
func (v Version) AppendJSON(b []byte) []byte {
	s := v.Schema
	b = append(b, `{"subject":`...)
	b = appendQuoted(b, v.Subject)
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, int64(v.Version), 10)
	b = append(b, `,"id":`...)
	b = strconv.AppendInt(b, int64(s.ID), 10)
	b = append(b, s.body[s.textEnd:len(s.body)-1]...)
	b = append(b, `,"schema":`...)
	b = append(b, s.body[bodyStart:s.textEnd]...)
	return append(b, '}')
}

// appendQuoted appends s as a JSON string. It escapes only the characters that JSON
// requires to be escaped, so that texts look as in Confluent Schema Registry.
func appendQuoted(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// AppendQuoted appends s as a JSON string, with the same escapes as schema texts.
func AppendQuoted(b []byte, s string) []byte { return appendQuoted(b, s) }

// unquote is the inverse of appendQuoted.
func unquote(quoted []byte) string {
	quoted = quoted[1 : len(quoted)-1]
	var out strings.Builder
	out.Grow(len(quoted))
	start := 0
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		out.Write(quoted[start:i])
		i++
		switch c := quoted[i]; c {
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			n, _ := strconv.ParseUint(string(quoted[i+1:i+5]), 16, 8) // appendQuoted wrote it
			out.WriteByte(byte(n))
			i += 4
		default:
			out.WriteByte(c)
		}
		start = i + 1
	}
	out.Write(quoted[start:])
	return out.String()
}
