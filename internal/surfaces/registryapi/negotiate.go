package registryapi

import (
	"mime"
	"net/http"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

// The media types of docs/spec/registry.md#negotiation. Responses use the first three
// only.
const (
	mediaV1     = "application/vnd.schemaregistry.v1+json"
	mediaVendor = "application/vnd.schemaregistry+json"
	mediaJSON   = "application/json"
	mediaBytes  = "application/octet-stream"
)

var (
	errNotAcceptable = errs.New(errs.Precondition, "HTTP 412 Precondition Failed")
	errMediaType     = errs.New(errs.Invalid, "HTTP 415 Unsupported Media Type")
)

// negotiate selects the media type of the response, and rejects a body of an unsupported
// type.
func (c *call) negotiate() error {
	lines := c.route.Value.exportFile
	var ok bool
	if c.media, ok = accept(c.R.Header["Accept"]); !ok {
		if _, ok := web.Accepts(c.R.Header["Accept"], mediaLines); !ok || !lines {
			return errNotAcceptable
		}
	}
	if m := c.route.Method; m != http.MethodPost && m != http.MethodPut {
		return nil
	}
	return checkContentType(c.R.Header["Content-Type"], lines)
}

// accept selects the best media type that the header allows.
func accept(header []string) (string, bool) {
	if len(header) == 1 {
		switch header[0] { // fast path for the values that nearly all clients send
		case mediaV1, "*/*":
			return mediaV1, true
		case mediaJSON:
			return mediaJSON, true
		}
	}
	media, ok := web.Accepts(header, mediaV1, mediaVendor, mediaJSON, mediaBytes)
	if !ok {
		return mediaV1, anyType(header)
	}
	if media == mediaBytes { // means no particular form
		media = mediaV1
	}
	return media, true
}

// anyType reports whether an element of the header has a wildcard for the type and a
// concrete subtype. Some clients send that.
func anyType(header []string) bool {
	for _, member := range strings.Split(strings.Join(header, ","), ",") {
		media, params, err := mime.ParseMediaType(member)
		if err == nil && strings.HasPrefix(media, "*/") && strings.Trim(params["q"], "0.") == params["q"] {
			return true
		}
	}
	return false
}

// checkContentType checks the content type of a write. It may be missing.
func checkContentType(header []string, lines bool) error {
	if len(header) == 0 || header[0] == "" {
		return nil
	}
	media := header[0]
	if media != mediaV1 && media != mediaJSON {
		var err error
		if media, _, err = mime.ParseMediaType(media); err != nil && media == "" {
			return errMediaType
		}
	}
	switch media {
	case mediaV1, mediaVendor, mediaJSON, mediaBytes:
		return nil
	case mediaLines:
		if lines {
			return nil
		}
	}
	return errMediaType
}
