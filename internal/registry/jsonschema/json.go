package jsonschema

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"freshet/internal/registry/jsontree"
)

const (
	// maxText limits a schema text in bytes. The registry's HTTP API allows 5 MiB.
	maxText = 16 << 20
	// maxDepth limits the nesting of objects and arrays. It is Jackson's limit, so every
	// schema in a Confluent Schema Registry is accepted, and it bounds the recursion over
	// values.
	maxDepth = 1000
)

// limits allows one level more than maxDepth, because the innermost level may be an empty
// object.
var limits = jsontree.Limits{Depth: maxDepth + 1}

// parseValue parses exactly one JSON value.
func parseValue(text string) (*jsontree.Value, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	v, rest, err := jsontree.Read(text, limits)
	if err != nil {
		return nil, syntaxError(err)
	}
	if v == nil {
		return nil, errors.New("unexpected end of JSON")
	}
	if rest = strings.TrimLeft(rest, " \t\n\r"); rest != "" {
		line, column := jsontree.Position(text, len(text)-len(rest))
		return nil, fmt.Errorf("unexpected text after the JSON value at line %d, column %d", line, column)
	}
	return v, nil
}

// syntaxTexts has the error texts of problems without parameters.
var syntaxTexts = map[jsontree.Problem]string{
	jsontree.NoMemberName:       "expected a member name in double quotes",
	jsontree.NoColon:            "expected ':' after a member name",
	jsontree.NoDigit:            "invalid number",
	jsontree.NoFractionDigit:    "invalid number: no digit after the decimal point",
	jsontree.NoExponentDigit:    "invalid number: no digit in the exponent",
	jsontree.LeadingZero:        "invalid number: leading zero",
	jsontree.OpenString:         "string is not closed",
	jsontree.BadEscape:          "unknown escape in a string",
	jsontree.BadUnicodeEscape:   "invalid \\u escape",
	jsontree.ShortUnicodeEscape: "incomplete \\u escape",
}

// syntaxError converts a JSON syntax error to an error text with its position.
func syntaxError(err error) error {
	var e *jsontree.SyntaxError
	if !errors.As(err, &e) {
		return err
	}
	text := syntaxTexts[e.Problem]
	switch {
	case e.Problem == jsontree.TooDeep:
		text = fmt.Sprintf("JSON is nested deeper than %d levels", maxDepth)
	case e.Problem == jsontree.ControlCharacter:
		text = fmt.Sprintf("control character %U in a string", e.Character)
	case e.Problem == jsontree.NoComma && e.Close == '}':
		text = "expected ',' or '}' in an object"
	case e.Problem == jsontree.NoComma:
		text = "expected ',' or ']' in an array"
	case e.Problem == jsontree.UnknownWord:
		text = fmt.Sprintf("unexpected word %q", clip(e.Word, 100))
	case text == "" && e.Character == jsontree.AtEnd:
		text = "unexpected end of JSON"
	case text == "":
		text = fmt.Sprintf("unexpected character %q", e.Character)
	}
	return fmt.Errorf("%s at line %d, column %d", text, e.Line, e.Column)
}

// emit prints v compactly: members in their order, numbers as written, and only the
// characters escaped that JSON requires (not <, > or &).
func emit(v *jsontree.Value) string {
	w := jsontree.Writer{Limit: math.MaxInt}
	w.Value(v, false)
	return string(w.Buf)
}
