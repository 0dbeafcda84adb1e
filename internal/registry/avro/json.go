package avro

import (
	"errors"
	"fmt"
	"strings"

	"freshet/internal/registry/jsontree"
)

// The limits for the JSON of a schema and of a message. As in Java, a schema may contain
// comments.
var (
	schemaLimits = jsontree.Limits{
		Depth: maxJSONDepth, Values: maxJSONValues, NumberBytes: maxNumberLength,
		Comments: true,
	}
	datumLimits = jsontree.Limits{Depth: maxJSONDepth, NumberBytes: maxNumberLength}
)

// readJSON parses one JSON value and rejects anything after it. subject is the noun for the
// text in error messages. The value is nil if the text has only white space and comments.
func readJSON(text string, limits jsontree.Limits, subject string) (*jsontree.Value, error) {
	v, rest, err := jsontree.Read(text, limits)
	if err != nil {
		return nil, syntaxError(err)
	}
	// As in Java, control characters may follow, and comments may not.
	rest = strings.TrimLeftFunc(rest, func(c rune) bool { return c <= ' ' })
	if rest != "" {
		return nil, invalid("dangling content after end of %s: %s", subject, shorten(rest))
	}
	return v, nil
}

// expected has the phrases of Jackson, Java's JSON library, for the expected token.
var expected = map[jsontree.Problem]string{
	jsontree.NoValue:           "a value",
	jsontree.NoMemberName:      "double-quote to start field name",
	jsontree.NoColon:           "a colon to separate field name and value",
	jsontree.NoDigit:           "a digit",
	jsontree.NoFractionDigit:   "a digit after the decimal point",
	jsontree.NoExponentDigit:   "a digit in the exponent",
	jsontree.TrailingCharacter: "the end of a number",
	jsontree.OpenString:        "closing quote for a string value",
	jsontree.BadComment:        "a value or a comment",
}

// syntaxError converts a JSON syntax error to the text of Jackson.
func syntaxError(err error) error {
	var e *jsontree.SyntaxError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Problem {
	case jsontree.TooDeep:
		return errDepth
	case jsontree.TooManyValues:
		return invalid("schema has more than %d JSON values", maxJSONValues)
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
			" backslash to be included in string value", e.Character)
	case jsontree.BadEscape, jsontree.BadUnicodeEscape, jsontree.ShortUnicodeEscape:
		return "Unrecognized character escape"
	case jsontree.OpenComment:
		return "Unexpected end-of-input in a comment"
	case jsontree.NoComma:
		want = fmt.Sprintf("comma to separate entries, or '%c'", e.Close)
	}
	if e.Character == jsontree.AtEnd {
		return "Unexpected end-of-input: was expecting " + want
	}
	return fmt.Sprintf("Unexpected character (%q (code %d)): was expecting %s", e.Character, e.Character, want)
}

// errDepth is Jackson's error for a text that is nested too deeply, when it is read or
// written.
var errDepth = invalid("Document nesting depth (%d) exceeds the maximum allowed (%d)", maxJSONDepth+1, maxJSONDepth)

var errPrintedSize = invalid("printed schema is longer than %d bytes", maxPrintedBytes)

// printError converts an error of the writer to an error for the author of the schema.
func printError(err error) error {
	if errors.Is(err, jsontree.ErrDeepOutput) {
		return errDepth
	}
	return errPrintedSize
}

// newWriter returns a writer that prints numbers as Java does, up to limit bytes.
func newWriter(limit int) jsontree.Writer {
	return jsontree.Writer{Limit: limit, Depth: maxJSONDepth, Number: appendNumber}
}

// quoted prints v for an error message, shortened if it is long.
func quoted(v *jsontree.Value) string {
	w := newWriter(maxQuotedBytes * 4)
	w.Value(v, false)
	return shorten(string(w.Buf))
}

// shorten truncates a text that is quoted in an error.
func shorten(s string) string { return shortenTo(s, maxQuotedBytes) }

func shortenTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
