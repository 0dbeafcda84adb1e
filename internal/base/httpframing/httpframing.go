// Package httpframing detects HTTP/1 requests whose length is ambiguous. A request with both
// Content-Length and Transfer-Encoding has one length for a proxy and another for the server, so
// an attacker could hide a second request in its body. net/http accepts such requests and removes
// Content-Length before a handler sees it, so a Tracker follows the bytes of the connection.
//
// It does not reject requests itself: internal/surfaces/refusal does, in the form of each surface.
// It does not decide how long a body is: net/http does, and Begin reports it to the Tracker.
//
// # Locks
//
//	lock        protects
//	Tracker.mu  all fields of the Tracker. net/http reads a connection in the background while
//	            its handler begins.
//
// It is not held while the connection is read.
package httpframing

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Errors of Begin.
var (
	ErrTwoLengths = errors.New("request has both Content-Length and Transfer-Encoding; send one of them")
	ErrOldVersion = errors.New("request has a Transfer-Encoding, which HTTP/1.0 does not support; use HTTP/1.1, " +
		"or a Content-Length")
	ErrUnclear = errors.New("end of the previous request on this connection is not clear; use a new connection")
)

// Tracker follows the requests of one HTTP/1 connection. Each Read ends at the end of a request's
// header and at the end of its body at the latest, so that the Tracker knows how long the body is
// before it reads it. If the Tracker and net/http disagree about the requests, Begin rejects the next one.
//
// The zero value is the start of a connection.
type Tracker struct {
	mu      sync.Mutex
	state   state
	left    int64  // bytes of the body, of the chunk, or of the end of the chunk that are still to come
	pending []byte // bytes that were read and not returned yet
	err     error  // error of the read that filled pending

	line    [lineStart]byte // start of the current line
	lineLen int             // length of the current line so far, also beyond its start
	first   bool            // the request line is complete
	length  bool            // the header that is being read has Content-Length
	coded   bool            // and Transfer-Encoding

	ended                  int // headers that are complete
	begun                  int // requests that a handler got
	endedLength, endedCode bool
}

// lineStart is how much of a line is kept: enough for the names of the two fields, for the size
// of a chunk, and for the first line of HTTP/2.
const lineStart = 32

type state int

const (
	inHeader   state = iota // before or in the header of a request
	headerRead              // after the header, before Begin
	inBody                  // in a body with a Content-Length
	inSize                  // in the line with the size of a chunk
	inChunk
	inChunkEnd // in the line end after a chunk
	inTrailer
	lost // the body is malformed, so its end is unknown; net/http rejects it, too
	off  // the connection does not use HTTP/1
)

// Read reads from a connection like its own Read, but not beyond the end of a header or body.
func (t *Tracker) Read(from io.Reader, p []byte) (int, error) {
	if n, done, err := t.readPending(p); done {
		return n, err
	}
	n, err := from.Read(p)
	if n <= 0 {
		return n, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	used := t.advance(p[:n])
	if used < n {
		t.pending, t.err = bytes.Clone(p[used:n]), err
		return used, nil
	}
	return n, err
}

// readPending returns pending bytes; done is false if there are none.
func (t *Tracker) readPending(p []byte) (n int, done bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == 0 {
		err, t.err = t.err, nil
		return 0, err != nil, err
	}
	n = t.advance(p[:copy(p, t.pending)])
	if t.pending = t.pending[n:]; len(t.pending) == 0 {
		t.pending = nil
	}
	return n, true, nil
}

// Begin reports that the handler of a request begins. length and chunked are what net/http has
// found in the header. Begin returns an error if the length of the request is ambiguous; then the
// connection must be closed after the response.
func (t *Tracker) Begin(length int64, chunked bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == off {
		return nil
	}
	t.begun++
	switch {
	case t.begun != t.ended:
		t.state = lost
		return ErrUnclear
	case t.state != headerRead && (chunked || length != 0):
		// net/http has read on, which it does only after a request without a body.
		t.state = lost
		return ErrUnclear
	case t.state != headerRead: // the first byte of the next request was read in the background
	case chunked:
		t.state = inSize
	case length > 0:
		t.state, t.left = inBody, length
	default:
		t.startHeader()
	}
	switch {
	case t.endedLength && t.endedCode:
		return ErrTwoLengths
	case t.endedCode && !chunked:
		return ErrOldVersion
	}
	return nil
}

func (t *Tracker) startHeader() {
	t.state, t.first, t.length, t.coded, t.lineLen = inHeader, false, false, false, 0
}

// advance follows bytes up to the end of a header or body, and returns how many these are.
func (t *Tracker) advance(b []byte) int {
	for at := 0; at < len(b); {
		switch t.state {
		case headerRead: // net/http reads on without a handler, so there is no body
			t.startHeader()
		case inHeader:
			n, complete := t.readLine(b[at:])
			at += n
			if complete && t.endHeaderLine() {
				return at
			}
		case inSize:
			n, complete := t.readLine(b[at:])
			at += n
			if complete {
				t.endSizeLine()
			}
		case inBody, inChunk, inChunkEnd:
			n := int(min(int64(len(b)-at), t.left))
			if t.state == inChunkEnd && b[at] != "\n\r"[t.left-1] {
				t.state = lost
				return len(b)
			}
			if t.state == inChunkEnd {
				n = 1
			}
			at += n
			if t.left -= int64(n); t.left == 0 && t.endPart() {
				return at
			}
		case inTrailer:
			n, complete := t.readLine(b[at:])
			at += n
			if complete && t.isEmptyLine() {
				t.startHeader()
				return at
			}
			if complete {
				t.lineLen = 0
			}
		case lost, off:
			return len(b)
		}
	}
	return len(b)
}

// readLine reads up to the end of a line, and returns how many bytes it has read and whether the
// line is complete.
func (t *Tracker) readLine(b []byte) (n int, complete bool) {
	end := bytes.IndexByte(b, '\n')
	text := b
	if complete = end >= 0; complete {
		text = b[:end]
	}
	if t.lineLen < lineStart {
		copy(t.line[t.lineLen:], text)
	}
	t.lineLen += len(text)
	if complete {
		return end + 1, true
	}
	return len(b), false
}

// isEmptyLine reports whether the complete line is empty.
func (t *Tracker) isEmptyLine() bool { return t.lineLen == 0 || t.lineLen == 1 && t.line[0] == '\r' }

// start returns the start of the complete line.
func (t *Tracker) start() string { return string(t.line[:min(t.lineLen, lineStart)]) }

// endHeaderLine evaluates a line of a header, and reports whether it is the last.
func (t *Tracker) endHeaderLine() bool {
	start, empty := t.start(), t.isEmptyLine()
	t.lineLen = 0
	switch {
	case !t.first && empty: // net/http accepts an empty line before a request
		return false
	case !t.first:
		t.first = true
		if strings.HasPrefix(start, "PRI * HTTP/2.0") {
			t.state = off
		}
		return false
	case empty:
		t.state = headerRead
		t.ended++
		t.endedLength, t.endedCode = t.length, t.coded
		return true
	}
	name, _, _ := strings.Cut(start, ":") // a continuation line begins with a space and has no name
	switch {
	case strings.EqualFold(name, "Content-Length"):
		t.length = true
	case strings.EqualFold(name, "Transfer-Encoding"):
		t.coded = true
	}
	return false
}

// endSizeLine evaluates the line with the size of a chunk.
func (t *Tracker) endSizeLine() {
	text, _, extended := strings.Cut(t.start(), ";")
	if !extended {
		text = strings.TrimRight(text, " \t\r\n")
	}
	size, err := strconv.ParseInt(text, 16, 64)
	cut := t.lineLen > lineStart && !extended
	t.lineLen = 0
	switch {
	case err != nil || cut || strings.ContainsAny(text, "+-_"):
		t.state = lost
	case size == 0:
		t.state = inTrailer
	default:
		t.state, t.left = inChunk, size
	}
}

// endPart is called at the end of a body, of a chunk, or of the line end after it. It reports
// whether it was the end of a body.
func (t *Tracker) endPart() bool {
	switch t.state {
	case inChunk:
		t.state, t.left = inChunkEnd, 2
	case inChunkEnd:
		t.state, t.lineLen = inSize, 0
	default:
		t.startHeader()
		return true
	}
	return false
}
