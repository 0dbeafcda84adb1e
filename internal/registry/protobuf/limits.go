package protobuf

import (
	"strings"
	"unicode/utf8"
)

// Limits of one schema. The registry's request limit is 5 MB, so maxText only
// matters to other callers; the rest keep the work of a hostile text linear.
const (
	maxText       = 8 << 20
	maxDepth      = 64   // brackets of any kind; protoc itself stops messages at 32
	maxNameParts  = 64   // a.b.c in one name
	maxNameLength = 1024 // of one dotted name
	maxFiles      = 1000 // in the closure of references
	maxClosure    = 64 << 20
	maxImports    = 2000
	// maxOptionValues bounds what costs the linker most memory, by far more than
	// annotations on every field of the largest schema need.
	maxOptionValues = 300_000
	// maxLine is the longest line whose columns are worth counting: protocompile
	// counts them from the start of the line, for every name it looks at.
	maxLine = 8 << 10
	// maxLookups bounds references to types × scopes × visible files, the cost
	// of resolving names, and oneofs × fields.
	maxLookups = 100_000_000
	// maxPublicPaths bounds the ways to reach a file through public imports,
	// which the linker walks one by one.
	maxPublicPaths = 10_000
)

// LargeText is how long a text is of which only one should be compiled at a
// time: a compilation needs some two hundred times the memory of its text.
const LargeText = 512 << 10

// checkText looks at the text before any recursive code does. It refuses what
// no sane schema needs: brackets nested too deeply (the parser and everything
// after it recurse) and names of absurd length (every lookup copies them).
// It knows strings and comments, and nothing else of the grammar.
func checkText(text string) error {
	if len(text) > maxText {
		return invalidf("schema of %d bytes is over the limit of %d", len(text), maxText)
	}
	if !utf8.ValidString(text) {
		return invalidf("schema is not valid UTF-8")
	}
	s := scanner{text: text, line: 1}
	for s.next() {
		if s.depth > maxDepth {
			return invalidAt(s.position(), "brackets are nested too deeply")
		}
		if s.parts > maxNameParts || s.length > maxNameLength {
			return invalidAt(s.position(), "name is too long")
		}
		if s.words > 2*maxOptionValues {
			return invalidAt(s.position(), "too many option values")
		}
	}
	return nil
}

// newestEdition is the one that the parser knows.
const newestEdition = "2023"

// editionOf returns the edition that a text says to be of, or "". It is asked
// before the parser, which takes the words of newer editions for slips of the
// pen.
func editionOf(text string) string {
	s := scanner{text: text, line: 1}
	s.skipBlanks()
	if !strings.HasPrefix(s.text[s.at:], "edition") {
		return ""
	}
	s.at += len("edition")
	s.skipBlanks()
	if !strings.HasPrefix(s.text[s.at:], "=") {
		return ""
	}
	s.at++
	s.skipBlanks()
	quoted := s.at
	if quoted == len(text) || text[quoted] != '"' && text[quoted] != '\'' {
		return ""
	}
	s.skipString(text[quoted])
	return strings.Trim(text[quoted:min(s.at, len(text))], `"'`)
}

// longLines reports whether a text has lines that are not worth pointing into.
func longLines(text string) bool {
	for len(text) > maxLine {
		end := strings.LastIndexByte(text[:maxLine+1], '\n')
		if end < 0 {
			return true
		}
		text = text[end+1:]
	}
	return false
}

// scanner steps through the tokens of a .proto text.
type scanner struct {
	text      string
	at        int
	line      int
	lineStart int

	depth   int
	last    byte // the first byte of the token before
	literal int  // the depth of the message literal we are in, or 0
	words   int  // in message literals

	parts  int // of the dotted name at the present token
	length int
	dotted bool // the last token was a dot
}

func (s *scanner) position() position {
	return position{line: s.line, col: s.at - s.lineStart + 1}
}

// next moves over one token and reports whether there was one.
func (s *scanner) next() bool {
	s.skipBlanks()
	if s.at >= len(s.text) {
		return false
	}
	c := s.text[s.at]
	switch {
	case c == '{' || c == '[' || c == '<' || c == '(':
		s.depth++
		if c == '{' && s.last == '=' && s.literal == 0 {
			s.literal = s.depth
		}
		s.endName()
		s.at++
	case c == '}' || c == ']' || c == '>' || c == ')':
		if s.depth == s.literal {
			s.literal = 0
		}
		s.depth = max(0, s.depth-1)
		s.endName()
		s.at++
	case c == '"' || c == '\'':
		s.endName()
		s.skipString(c)
	case c == '.':
		s.dotted = true
		s.at++
	case wordByte(c):
		s.word()
	default:
		s.endName()
		s.at++
	}
	s.last = c
	return true
}

func (s *scanner) endName() {
	s.parts, s.length, s.dotted = 0, 0, false
}

func (s *scanner) word() {
	if !s.dotted {
		s.parts, s.length = 0, 0
	}
	start := s.at
	for s.at < len(s.text) && wordByte(s.text[s.at]) {
		s.at++
	}
	if s.literal > 0 {
		s.words++
	}
	s.parts++
	s.length += s.at - start + 1
	s.dotted = false
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// skipBlanks moves over white space and comments.
func (s *scanner) skipBlanks() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case rest[0] == '\n':
			s.at++
			s.line, s.lineStart = s.line+1, s.at
		case rest[0] <= ' ':
			s.at++
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(rest, "/*"):
			s.skipBlockComment(rest)
		default:
			return
		}
	}
}

func (s *scanner) skipBlockComment(rest string) {
	end := strings.Index(rest[2:], "*/")
	if end < 0 {
		s.at = len(s.text)
		return
	}
	end += 4
	if lines := strings.Count(rest[:end], "\n"); lines > 0 {
		s.line += lines
		s.lineStart = s.at + strings.LastIndexByte(rest[:end], '\n') + 1
	}
	s.at += end
}

func (s *scanner) skipString(quote byte) {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case quote:
			s.at++
			return
		case '\n':
			return // unterminated: the parser will say so
		}
	}
}
