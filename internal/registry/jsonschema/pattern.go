package jsonschema

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

const (
	// maxPattern limits the length of one regular expression in bytes.
	maxPattern = 128 << 10
	// patternTime is the timeout of one match. A normal pattern needs microseconds, a
	// malicious one could need years.
	patternTime = 100 * time.Millisecond
	// stepTime is the time that counts as one step of work.
	stepTime = 100 * time.Nanosecond
)

// pattern is a compiled regular expression. Matching is bounded in time.
type pattern struct {
	re *regexp2.Regexp
}

// compilePattern compiles a regular expression of ECMAScript. If that fails it replaces the
// names of character classes that the engine does not support, of ECMAScript and of Java:
// Confluent Schema Registry uses Java's dialect, and its schemas must load here.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("regular expression is longer than %d bytes", maxPattern)
	}
	re, err := regexp2.Compile(text, regexp2.ECMAScript)
	if err != nil {
		var second error
		if re, second = regexp2.Compile(spellClasses(text), regexp2.ECMAScript); second != nil {
			return nil, fmt.Errorf("invalid regular expression %q: %w", clip(text, 100), err)
		}
	}
	re.MatchTimeout = patternTime
	return &pattern{re: re}, nil
}

// classes maps long names of character classes to their definitions.
var classes = map[string]string{
	"Letter": `\p{L}`, "Uppercase_Letter": `\p{Lu}`, "Lowercase_Letter": `\p{Ll}`, "Titlecase_Letter": `\p{Lt}`,
	"Modifier_Letter": `\p{Lm}`, "Other_Letter": `\p{Lo}`, "Mark": `\p{M}`, "Nonspacing_Mark": `\p{Mn}`,
	"Spacing_Mark": `\p{Mc}`, "Number": `\p{N}`, "Decimal_Number": `\p{Nd}`, "Letter_Number": `\p{Nl}`,
	"Other_Number": `\p{No}`, "Punctuation": `\p{P}`, "Symbol": `\p{S}`, "Currency_Symbol": `\p{Sc}`,
	"Math_Symbol": `\p{Sm}`, "Separator": `\p{Z}`, "Space_Separator": `\p{Zs}`, "Other": `\p{C}`, "Control": `\p{Cc}`,
	"digit": `\p{Nd}`, "punct": `\p{P}`,
	"Alphabetic": `\p{L}\p{Nl}`, "IsAlphabetic": `\p{L}\p{Nl}`, "IsLetter": `\p{L}`, "IsDigit": `\p{Nd}`,
	"IsUppercase": `\p{Lu}`, "IsLowercase": `\p{Ll}`, "IsPunctuation": `\p{P}`,
	"Alpha": `a-zA-Z`, "Digit": `0-9`, "Alnum": `a-zA-Z0-9`, "Upper": `A-Z`, "Lower": `a-z`,
	"XDigit": `0-9a-fA-F`, "Space": `\t-\r `, "Blank": `\t `, "Cntrl": `\x00-\x1F\x7F`, "ASCII": `\x00-\x7F`,
	"Punct": `!-/:-@\[-\x60{-~`, "Graph": `!-~`, "Print": ` -~`,
}

// spellClasses replaces \p{Name} and \P{Name} for the names in classes and for scripts
// written as Script=Name or IsName.
func spellClasses(text string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '\\' && i+1 < len(text):
			end := strings.IndexByte(text[i:], '}')
			if (text[i+1] != 'p' && text[i+1] != 'P') || end < 4 || text[i+2] != '{' {
				b.WriteString(text[i : i+2])
				i++
				continue
			}
			b.WriteString(spellClass(text[i+3:i+end], text[i+1] == 'P', inClass))
			i += end
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func spellClass(name string, negated, inClass bool) string {
	if _, after, ok := strings.Cut(name, "="); ok {
		name = after
	}
	body, known := classes[name]
	if !known {
		body = `\p{` + strings.TrimPrefix(name, "Is") + `}`
	}
	switch {
	case !inClass && negated:
		return "[^" + body + "]"
	case !inClass:
		return "[" + body + "]"
	case negated && strings.Count(body, `\p{`) == 1:
		return strings.Replace(body, `\p`, `\P`, 1)
	case negated:
		return `\P{` + name + `}`
	}
	return body
}

// find reports whether s contains a match. An error means a timeout.
func (p *pattern) find(s string) (bool, error) {
	found, err := p.re.MatchString(s)
	if err != nil {
		return false, fmt.Errorf("matching regular expression %q timed out", clip(p.re.String(), 100))
	}
	return found, nil
}
