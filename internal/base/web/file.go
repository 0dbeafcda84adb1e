package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// File is a file that never changes while the process runs, with its response headers. The
// browser revalidates it by its ETag, or caches it if the handler sets Cache-Control.
type File struct {
	kind, etag string
	body       []byte
	packed     func() []byte // returns body in gzip, compressed on the first call; nil if that is not smaller
}

// NewFile returns a file. Its name determines the content type.
func NewFile(name string, body []byte) *File {
	sum := sha256.Sum256(body)
	return &File{
		kind: contentType(name), etag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body,
		packed: sync.OnceValue(func() []byte { return pack(body) }),
	}
}

// contentType returns the content type of a file. The types of our own files do not depend on
// the MIME tables of the machine.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".html":
		return "text/html; charset=utf-8"
	case ".json":
		return "application/json"
	case ".md", ".txt", ".yaml": // browsers show plain text, and download the specific types
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := w.Write(body); err != nil {
		return nil
	}
	if err := w.Close(); err != nil || b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// ServeHTTP implements http.Handler. The caller has checked that the method is GET or HEAD.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", f.etag)
	h.Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		if packed := f.packed(); packed != nil {
			body = packed
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // an error means that the browser has disconnected
}

// SetPageHeaders sets the security headers of pages for browsers, with their Content Security Policy.
func SetPageHeaders(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}
