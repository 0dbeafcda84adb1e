package web

import (
	"net/url"
	"strings"

	"freshet/internal/base/errs"
)

// maxSegments is more than any route has; what is longer is only found by
// routes that end in "...".
const maxSegments = 12

// ErrPathEncoding is what is wrong with a path of which a segment cannot be
// unescaped.
var ErrPathEncoding = errs.New(errs.Invalid, "the path is not properly percent-encoded")

// Path is the path of a request in segments, each of them unescaped by itself,
// since a name may hold a slash as %2F. One slash at the end means nothing.
// Segments are split off as they are asked for.
type Path struct {
	rest    string // not split yet
	escaped bool
	more    bool // rest is another segment
	bad     bool // a segment cannot be unescaped
	n       int
	list    [maxSegments]string
}

// Parse takes the path of a URL.
func (p *Path) Parse(u *url.URL) {
	path := u.RawPath
	p.escaped = path != ""
	if !p.escaped {
		// Then the default encoding of Path is what was sent, and every slash in
		// it was a slash.
		path = u.Path
	}
	p.rest = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	p.more, p.bad, p.n = p.rest != "", false, 0
}

// at returns a segment, and splits as far as that takes.
func (p *Path) at(i int) (string, bool) {
	for i >= p.n {
		if !p.more || p.bad || p.n == maxSegments {
			return "", false
		}
		var piece string
		piece, p.rest, p.more = strings.Cut(p.rest, "/")
		if p.escaped && strings.IndexByte(piece, '%') >= 0 {
			var err error
			if piece, err = url.PathUnescape(piece); err != nil {
				p.bad = true
				return "", false
			}
		}
		p.list[p.n] = piece
		p.n++
	}
	return p.list[i], true
}

// whole says whether every segment has been split off.
func (p *Path) whole() bool { return !p.more && !p.bad }

// Len is the number of segments split off so far.
func (p *Path) Len() int { return p.n }

// Segment returns a segment, "" when the path is shorter.
func (p *Path) Segment(i int) string {
	s, _ := p.at(i)
	return s
}

// Remove takes a segment out of the path.
func (p *Path) Remove(i int) {
	if _, ok := p.at(i); ok {
		copy(p.list[i:p.n], p.list[i+1:p.n])
		p.n--
	}
}

// Err returns ErrPathEncoding when a segment could not be unescaped.
func (p *Path) Err() error {
	if p.bad {
		return ErrPathEncoding
	}
	return nil
}
