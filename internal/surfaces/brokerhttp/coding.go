package brokerhttp

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

// codings are the content codings that bodies may come in; identity is none.
const codings = "gzip, identity"

var errCoding = errs.New(errs.Invalid,
	"the Content-Encoding of the request is not supported; send the body as it is, or with gzip")

// decoded returns the request with its body as it was before the client
// compressed it. What comes out of it is bounded by the limit of whoever reads
// it, since its length is not known; what goes in is bounded here.
func decoded(r *http.Request, limit int64) (*http.Request, error) {
	values := r.Header["Content-Encoding"]
	if len(values) == 0 {
		return r, nil
	}
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(values, ","))); coding {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
	default:
		return nil, WithStatus(http.StatusUnsupportedMediaType, errCoding)
	}
	if r.ContentLength > limit {
		return nil, errs.Newf(errs.TooLarge, "%w: it has %d bytes, the limit is %d", web.ErrBodyTooLarge,
			r.ContentLength, limit)
	}
	plain, err := gzip.NewReader(&boundedReader{r: r.Body, left: limit})
	if err != nil {
		return nil, BadBody("it is not gzip, as its Content-Encoding says: %w", err)
	}
	out := *r // a clone would copy the headers too
	out.Body, out.ContentLength = plain, -1
	return &out, nil
}

// boundedReader fails with web.ErrBodyTooLarge past its bound.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, web.ErrBodyTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
