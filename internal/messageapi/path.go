package messageapi

import (
	"net/http"
	"net/url"
	"strings"

	"freshet/internal/errs"
)

// maxSegments is more than any path of ours has.
const maxSegments = 12

// segments is a path beneath one of the roots, in pieces and unescaped.
type segments struct {
	list [maxSegments]string
	n    int
}

var (
	errNoRoute = errs.New(errs.NotFound, "there is nothing at this path")
	errPath    = errs.New(errs.Invalid, "path is not properly percent-encoded")
)

// split takes the path behind root apart. It does so before unescaping, since
// a name may hold a slash as %2F. One trailing slash makes no difference.
func (s *segments) split(r *http.Request, root string) error {
	path, escaped := r.URL.RawPath, true
	if path == "" {
		// Then the default encoding of Path is what was sent, and every slash
		// in it was a slash.
		path, escaped = r.URL.Path, false
	}
	rest, ok := strings.CutPrefix(path, root)
	if !ok {
		return errNoRoute
	}
	rest = strings.TrimSuffix(rest, "/")
	for more := true; more; {
		if s.n == maxSegments {
			return errNoRoute
		}
		var piece string
		piece, rest, more = strings.Cut(rest, "/")
		if escaped && strings.IndexByte(piece, '%') >= 0 {
			var err error
			if piece, err = url.PathUnescape(piece); err != nil {
				return errPath
			}
		}
		s.list[s.n] = piece
		s.n++
	}
	return nil
}
