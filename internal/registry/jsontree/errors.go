package jsontree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Problem is what is wrong with a text.
type Problem uint8

// The problems.
const (
	NoValue            Problem = iota // a value must stand here
	UnknownWord                       // neither null, true nor false
	NoMemberName                      // a member's key in double quotes must stand here
	NoColon                           // a colon must stand here
	NoComma                           // a comma or the closing bracket must stand here
	NoDigit                           // a digit of a number must stand here
	NoFractionDigit                   // a digit must follow the decimal point
	NoExponentDigit                   // a digit must stand in the exponent
	LeadingZero                       // a number begins with a zero too many
	NumberGoesOn                      // something follows a number that is no part of it
	NumberTooLong                     // a number is longer than Limits.NumberBytes
	ControlCharacter                  // a control character stands in a string
	OpenString                        // a string is not closed
	BadEscape                         // an unknown escape stands in a string
	BadUnicodeEscape                  // a \u escape has other characters than hexadecimal digits
	ShortUnicodeEscape                // a \u escape is cut off
	OpenComment                       // a comment is not closed
	BadComment                        // a slash begins no comment
	TooDeep                           // nesting is deeper than Limits.Depth
	TooManyValues                     // there are more values than Limits.Values
)

// SyntaxError tells why a text cannot be read, and where. Its users have words
// of their own for it.
type SyntaxError struct {
	Problem      Problem
	Line, Column int    // 1-based; columns count characters
	Found        rune   // what stands there; AtEnd at the end of the text
	Word         string // of UnknownWord
	Close        byte   // of NoComma: the bracket that could stand there instead
	Length       int    // of NumberTooLong: the length of the number
}

// AtEnd is what SyntaxError finds at the end of the text.
const AtEnd rune = -1

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("the JSON text cannot be read at line %d, column %d: problem %d", e.Line, e.Column, e.Problem)
}

// fail makes the error for the current position.
func (r *reader) fail(p Problem) *SyntaxError {
	e := &SyntaxError{Problem: p, Found: AtEnd}
	e.Line, e.Column = Position(r.text, r.pos)
	if r.pos < len(r.text) {
		e.Found, _ = utf8.DecodeRuneInString(r.text[r.pos:])
	}
	return e
}

// Position returns the line and the column of an offset in a text, 1-based;
// columns count characters.
func Position(text string, offset int) (line, column int) {
	before := text[:offset]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}
