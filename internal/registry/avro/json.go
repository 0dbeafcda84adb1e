package avro

import (
	"errors"
	"fmt"
	"strings"

	"freshet/internal/registry/jsontree"
)

// What may stand in the JSON of a schema and of a message. Java's library allows
// comments in a schema.
var (
	schemaLimits = jsontree.Limits{
		Depth: maxJSONDepth, Values: maxJSONValues, NumberBytes: maxNumberLength,
		Comments: true,
	}
	datumLimits = jsontree.Limits{Depth: maxJSONDepth, NumberBytes: maxNumberLength}
)

// readJSON reads one JSON value and refuses anything after it; subject names
// what the text is. A text of white space only has no value and gives nil.
func readJSON(text string, limits jsontree.Limits, subject string) (*jsontree.Value, error) {
	v, rest, err := jsontree.Read(text, limits)
	if err != nil {
		return nil, syntaxError(err)
	}
	// Java trims control characters here, too, and allows no comment.
	rest = strings.TrimLeftFunc(rest, func(c rune) bool { return c <= ' ' })
	if rest != "" {
		return nil, invalid("dangling content after end of %s: %s", subject, shorten(rest))
	}
	return v, nil
}

// expected says what Java's library was expecting where it found something else.
var expected = map[jsontree.Problem]string{
	jsontree.NoValue:         "a value",
	jsontree.NoMemberName:    "double-quote to start field name",
	jsontree.NoColon:         "a colon to separate field name and value",
	jsontree.NoDigit:         "a digit",
	jsontree.NoFractionDigit: "a digit after the decimal point",
	jsontree.NoExponentDigit: "a digit in the exponent",
	jsontree.NumberGoesOn:    "the end of a number",
	jsontree.OpenString:      "closing quote for a string value",
	jsontree.BadComment:      "a value or a comment",
}

// syntaxError puts a failure to read JSON into the words of Java's library.
func syntaxError(err error) error {
	var e *jsontree.SyntaxError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Problem {
	case jsontree.TooDeep:
		return errDepth
	case jsontree.TooManyValues:
		return invalid("the schema has more than %d JSON values", maxJSONValues)
	}
	return invalid("%s at line %d, column %d", syntaxText(e), e.Line, e.Column)
}

func syntaxText(e *jsontree.SyntaxError) string {
	want := expected[e.Problem]
	switch e.Problem {
	case jsontree.UnknownWord:
		return fmt.Sprintf("Unrecognized token '%s': was expecting (JSON String, Number, Array, Object"+
			" or token 'null', 'true' or 'false')", shorten(e.Word))
	case jsontree.LeadingZero:
		return "Invalid numeric value: Leading zeroes not allowed"
	case jsontree.NumberTooLong:
		return fmt.Sprintf("Number value length (%d) exceeds the maximum allowed (%d)", e.Length, maxNumberLength)
	case jsontree.ControlCharacter:
		return fmt.Sprintf("Illegal unquoted character ((CTRL-CHAR, code %d)): has to be escaped using"+
			" backslash to be included in string value", e.Found)
	case jsontree.BadEscape, jsontree.BadUnicodeEscape, jsontree.ShortUnicodeEscape:
		return "Unrecognized character escape"
	case jsontree.OpenComment:
		return "Unexpected end-of-input in a comment"
	case jsontree.NoComma:
		want = fmt.Sprintf("comma to separate entries, or '%c'", e.Close)
	}
	if e.Found == jsontree.AtEnd {
		return "Unexpected end-of-input: was expecting " + want
	}
	return fmt.Sprintf("Unexpected character (%q (code %d)): was expecting %s", e.Found, e.Found, want)
}

// errDepth is what Java's JSON library says of a text nested too deeply, both
// when it reads and when it writes.
var errDepth = invalid("Document nesting depth (%d) exceeds the maximum allowed (%d)", maxJSONDepth+1, maxJSONDepth)

var errPrintedSize = invalid("the printed schema is longer than %d bytes", maxPrintedBytes)

// printError tells the author of a schema why it cannot be printed.
func printError(err error) error {
	if errors.Is(err, jsontree.ErrDeepOutput) {
		return errDepth
	}
	return errPrintedSize
}

// newWriter makes a writer that prints numbers as Java does, up to a number of
// bytes.
func newWriter(limit int) jsontree.Writer {
	return jsontree.Writer{Limit: limit, Depth: maxJSONDepth, Number: appendNumber}
}

// quoted prints v for an error message, shortened when it is long.
func quoted(v *jsontree.Value) string {
	w := newWriter(maxQuotedBytes * 4)
	w.Value(v, false)
	return shorten(string(w.Buf))
}

// shorten cuts a text that is quoted in an error.
func shorten(s string) string { return shortenTo(s, maxQuotedBytes) }

func shortenTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
