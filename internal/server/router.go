package server

import (
	"net/http"
	"strings"
)

// router sends a request to its surface by the beginning of its path. Unlike
// http.ServeMux it leaves paths as they are: a surface answers an odd path in
// its own form, and nobody is redirected, which would cost a POST its body.
type router struct {
	mounts   []mount
	fallback http.Handler // everything else
}

// mount is a surface at a path and at everything beneath it.
type mount struct {
	path    string // without the slash at the end
	handler http.Handler
}

func (m mount) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, m.path)
	return ok && (rest == "" || rest[0] == '/')
}

// ServeHTTP implements http.Handler.
func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	for _, m := range r.mounts {
		if m.covers(req.URL.Path) {
			m.handler.ServeHTTP(w, req)
			return
		}
	}
	r.fallback.ServeHTTP(w, req)
}
