package protobuf

import (
	"strings"
	"unicode/utf8"
)

// The limits of one schema. The registry's request limit is 5 MB, so maxText applies only to
// other callers; the others keep the work for malicious texts linear.
const (
	maxText       = 8 << 20
	maxDepth      = 64   // nested brackets of any kind; protoc allows 32 levels of messages
	maxNameParts  = 64   // parts of one dotted name
	maxNameLength = 1024 // length of one dotted name
	maxFiles      = 1000 // files in the closure of references
	maxClosure    = 64 << 20
	maxImports    = 2000
	// maxOptionValues limits the option values, which need most of the linker's memory. It
	// allows annotations on every field of the largest schema.
	maxOptionValues = 300_000
	// maxLine is the longest line for which positions are reported: protocompile counts
	// columns from the start of the line for every name.
	maxLine = 8 << 10
	// maxLookups limits references to types × scopes × visible files, which is the cost of
	// resolving names, and oneofs × fields.
	maxLookups = 100_000_000
	// maxPublicPaths limits the number of paths to files through public imports, because
	// the linker follows each path.
	maxPublicPaths = 10_000
)

// LargeText is the length from which on only one text should be compiled at a time, because
// compiling needs about two hundred times the memory of the text.
const LargeText = 512 << 10

// checkText checks the text before any recursive code runs. It rejects deeply nested
// brackets, because the parser and all later steps are recursive, and very long names,
// because every lookup copies them. It recognizes only strings and comments of the grammar.
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

// newestEdition is the edition that the parser supports.
const newestEdition = "2023"

// editionOf returns the edition of a text, or "". The caller checks it itself, because the
// parser reports the keywords of newer editions as syntax errors.
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

// longLines reports whether a text has lines longer than maxLine.
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

// scanner splits a .proto text into tokens.
type scanner struct {
	text      string
	at        int
	line      int
	lineStart int

	depth   int
	last    byte // the first byte of the previous token
	literal int  // the depth of the enclosing message literal, or 0
	words   int  // number of words in message literals

	parts  int // number of parts of the dotted name at the current token
	length int
	dotted bool // the previous token was a dot
}

func (s *scanner) position() position { return position{line: s.line, col: s.at - s.lineStart + 1} }

// next skips one token and returns false at the end of the text.
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

func (s *scanner) endName() { s.parts, s.length, s.dotted = 0, 0, false }

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

// skipBlanks skips white space and comments.
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
			return // the parser reports an unterminated string
		}
	}
}
