package web

import (
	"net/url"
	"strings"

	"freshet/internal/base/errs"
)

// maxSegments is more than any route has. A longer path only matches routes that end in
// "...".
const maxSegments = 12

// ErrPathEncoding rejects a path with a segment that cannot be unescaped.
var ErrPathEncoding = errs.New(errs.Invalid, "path is not properly percent-encoded")

// Path is the path of a request in segments. Each segment is unescaped separately,
// because a name can contain a slash as %2F. One trailing slash is ignored. Segments are
// split lazily.
type Path struct {
	rest    string // not split yet
	escaped bool
	hasMore bool // rest has at least one segment
	invalid bool // a segment cannot be unescaped
	n       int
	list    [maxSegments]string
}

// Parse resets p to the path of a URL.
func (p *Path) Parse(u *url.URL) {
	path := u.RawPath
	p.escaped = path != ""
	if !p.escaped {
		// Then the request had the default encoding of Path, and every slash in Path is a
		// separator.
		path = u.Path
	}
	p.rest = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	p.hasMore, p.invalid, p.n = p.rest != "", false, 0
}

// at returns a segment. It splits the path as far as needed.
func (p *Path) at(i int) (string, bool) {
	for i >= p.n {
		if !p.hasMore || p.invalid || p.n == maxSegments {
			return "", false
		}
		var piece string
		piece, p.rest, p.hasMore = strings.Cut(p.rest, "/")
		if p.escaped && strings.IndexByte(piece, '%') >= 0 {
			var err error
			if piece, err = url.PathUnescape(piece); err != nil {
				p.invalid = true
				return "", false
			}
		}
		p.list[p.n] = piece
		p.n++
	}
	return p.list[i], true
}

// complete reports whether every segment has been split.
func (p *Path) complete() bool { return !p.hasMore && !p.invalid }

// Len returns the number of segments that have been split so far.
func (p *Path) Len() int { return p.n }

// Segment returns a segment, "" if the path is shorter.
func (p *Path) Segment(i int) string {
	s, _ := p.at(i)
	return s
}

// Remove removes a segment from the path.
func (p *Path) Remove(i int) {
	if _, ok := p.at(i); ok {
		copy(p.list[i:p.n], p.list[i+1:p.n])
		p.n--
	}
}

// Err returns ErrPathEncoding if a segment could not be unescaped.
func (p *Path) Err() error {
	if p.invalid {
		return ErrPathEncoding
	}
	return nil
}
