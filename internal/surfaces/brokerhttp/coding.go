package brokerhttp

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

// contentCodings are the content codings that request bodies may have; identity means none.
const contentCodings = "gzip, identity"

var errCoding = errs.New(errs.Invalid,
	"content encoding of the request is not supported; send the body uncompressed or with gzip")

// decoded returns the request with a decompressed body. It limits the compressed size.
// The length of the decompressed body is not known in advance, so its reader must limit
// that.
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
		return nil, errs.Newf(errs.TooLarge, "%w: %d bytes, the limit is %d", web.ErrBodyTooLarge,
			r.ContentLength, limit)
	}
	plain, err := gzip.NewReader(&boundedReader{r: r.Body, remaining: limit})
	if err != nil {
		return nil, BadBody("the Content-Encoding is gzip, but the body is not: %w", err)
	}
	out := *r // a clone would copy the headers too
	out.Body, out.ContentLength = plain, -1
	return &out, nil
}

// boundedReader fails with web.ErrBodyTooLarge after left bytes.
type boundedReader struct {
	r         io.Reader
	remaining int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, web.ErrBodyTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	return n, err
}
