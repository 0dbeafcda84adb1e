package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Limits of one Tail.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	maxScan      = 64 << 20
	blockSize    = 64 << 10
	maxLine      = 64 << 10
)

// Query selects records; an empty field matches any value. A surface that reads for an
// organization must set Organization.
type Query struct {
	Organization string
	Principal    string
	Surface      string
	Verb         string
	Resource     string
	Decision     Decision
	RequestID    string
	Since        time.Time // inclusive
	Until        time.Time // exclusive; the time of the last record of a page selects the next page
	Limit        int       // 0 means DefaultLimit, at most MaxLimit
}

// Tail returns the newest matching records that this server wrote, the newest first. It
// includes all records before the call. It searches only the last 64 MiB of the log.
func (l *Log) Tail(ctx context.Context, q Query) ([]Record, error) {
	select {
	case l.readers <- struct{}{}:
		defer func() { <-l.readers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := l.Flush(ctx); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	files, err := l.file.openAll()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer closeAll(files)
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	s := backwardScan{query: q, limit: min(q.Limit, MaxLimit), budget: maxScan}
	for _, file := range files {
		if err := s.scanFile(ctx, file); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if s.done() {
			break
		}
	}
	return s.records, nil
}

// backwardScan reads files backwards.
type backwardScan struct {
	query   Query
	limit   int
	budget  int64
	records []Record
	tooOld  bool // all further records are older than Query.Since
}

func (s *backwardScan) done() bool { return s.tooOld || len(s.records) >= s.limit || s.budget <= 0 }

// scanFile scans the lines of one file, the last first.
func (s *backwardScan) scanFile(ctx context.Context, file *os.File) error {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	block := make([]byte, blockSize)
	var rest []byte // the beginning of a line whose end was in a later block
	for end > 0 && !s.done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(end, blockSize)
		end -= n
		s.budget -= n
		if _, err := file.ReadAt(block[:n], end); err != nil {
			return err
		}
		data := append(bytes.Clone(block[:n]), rest...)
		first := bytes.IndexByte(data, '\n')
		if end > 0 && first < 0 {
			rest = data
			if len(rest) > maxLine {
				rest = nil // too long for a line of this log
			}
			continue
		}
		if end == 0 {
			first = -1
		}
		rest = bytes.Clone(data[:first+1])
		s.lines(data[first+1:])
	}
	return nil
}

// lines scans complete lines, the last first.
func (s *backwardScan) lines(data []byte) {
	data = bytes.TrimRight(data, "\n")
	for len(data) > 0 && !s.done() {
		i := bytes.LastIndexByte(data, '\n')
		s.line(data[i+1:])
		data = data[:max(i, 0)]
	}
}

func (s *backwardScan) line(line []byte) {
	// Most lines of a busy log do not match, so this searches the text before it decodes.
	if !mayContain(line, s.query.Organization) || !mayContain(line, s.query.Principal) ||
		!mayContain(line, s.query.RequestID) {
		return
	}
	var r Record
	if json.Unmarshal(line, &r) != nil {
		return // incomplete because of a crash
	}
	switch {
	case !s.query.Since.IsZero() && r.Time.Before(s.query.Since.Add(-time.Minute)):
		s.tooOld = true // records are only roughly ordered by time; a minute is enough tolerance
	case s.query.matches(&r):
		s.records = append(s.records, r)
	}
}

// mayContain is a cheap test without false negatives: it may return true although the field
// does not match. For a text with characters that JSON escapes it always returns true.
func mayContain(line []byte, text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return true
		}
	}
	return bytes.Contains(line, []byte(text))
}

func (q *Query) matches(r *Record) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(q.Organization, r.Organization) && same(q.Principal, r.Principal) && same(q.Surface, r.Surface) &&
		same(q.Verb, r.Verb) && same(q.Resource, r.Resource) && same(string(q.Decision), string(r.Decision)) &&
		same(q.RequestID, r.RequestID) &&
		(q.Since.IsZero() || !r.Time.Before(q.Since)) && (q.Until.IsZero() || r.Time.Before(q.Until))
}
