package jsontree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Problem is the kind of a syntax error.
type Problem uint8

// The kinds of syntax errors.
const (
	NoValue            Problem = iota // a value is expected
	UnknownWord                       // a word is neither null, true nor false
	NoMemberName                      // a key in double quotes is expected
	NoColon                           // a colon is expected
	NoComma                           // a comma or the closing bracket is expected
	NoDigit                           // a digit of a number is expected
	NoFractionDigit                   // a digit is expected after the decimal point
	NoExponentDigit                   // a digit is expected in the exponent
	LeadingZero                       // a number has a leading zero
	TrailingCharacter                 // a letter, digit or underscore follows a number
	NumberTooLong                     // a number is longer than Limits.NumberBytes
	ControlCharacter                  // a string contains a control character
	OpenString                        // a string is not closed
	BadEscape                         // a string contains an unknown escape
	BadUnicodeEscape                  // a \u escape has other characters than hexadecimal digits
	ShortUnicodeEscape                // the text ends inside a \u escape
	OpenComment                       // a comment is not closed
	BadComment                        // a slash does not begin a comment
	TooDeep                           // nesting is deeper than Limits.Depth
	TooManyValues                     // the text has more values than Limits.Values
)

// SyntaxError is a syntax error with its position. The users of the package convert it to
// their own error texts.
type SyntaxError struct {
	Problem      Problem
	Line, Column int    // 1-based; columns count characters
	Character    rune   // the character at the position; AtEnd at the end of the text
	Word         string // of UnknownWord
	Close        byte   // of NoComma: the closing bracket that is also expected
	Length       int    // of NumberTooLong: the length of the number
}

// AtEnd is SyntaxError.Character at the end of the text.
const AtEnd rune = -1

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("JSON syntax error at line %d, column %d: problem %d", e.Line, e.Column, e.Problem)
}

// fail returns the error for the current position.
func (r *reader) fail(p Problem) *SyntaxError {
	e := &SyntaxError{Problem: p, Character: AtEnd}
	e.Line, e.Column = Position(r.text, r.pos)
	if r.pos < len(r.text) {
		e.Character, _ = utf8.DecodeRuneInString(r.text[r.pos:])
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
