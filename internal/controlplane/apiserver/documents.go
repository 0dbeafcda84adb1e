package apiserver

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const openAPIPrefix = "/openapi/"

// serveDocuments returns a Status for errors of the OpenAPI documents. The library that serves them
// writes nothing for a group that is not served, and only a status code for an unsupported media
// type.
func serveDocuments(codecs serializer.CodecFactory, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, openAPIPrefix) {
			api.ServeHTTP(w, r)
			return
		}
		out := &documentWriter{ResponseWriter: w}
		api.ServeHTTP(out, r)
		switch {
		case out.failed != 0:
			writeStatus(codecs, w, r, apierrors.NewGenericServerResponse(out.failed, r.Method, schema.GroupResource{},
				"", "", 0, false))
		case !out.written:
			notFound(codecs).ServeHTTP(w, r)
		}
	})
}

// documentWriter forwards successful responses and holds back errors.
type documentWriter struct {
	http.ResponseWriter
	written bool
	failed  int
}

// WriteHeader implements http.ResponseWriter.
func (w *documentWriter) WriteHeader(code int) {
	if code >= http.StatusBadRequest && !w.written {
		w.failed = code
		return
	}
	w.written = true
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *documentWriter) Write(p []byte) (int, error) {
	if w.failed != 0 {
		return len(p), nil
	}
	w.written = true
	return w.ResponseWriter.Write(p)
}
