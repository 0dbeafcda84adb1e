package server

import (
	"net/http"
	"strings"

	"freshet/internal/web"
)

// router sends a request to its surface by the beginning of its path. Unlike
// http.ServeMux it leaves paths as they are: a surface answers an odd path in
// its own form, and nobody is redirected, which would cost a POST its body.
type router struct {
	mounts   []mount
	fallback mount // everything else
}

// mount is a surface at a path and at everything beneath it.
type mount struct {
	path    string // without the slash at the end
	surface string
	handler http.Handler
}

func (m mount) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, m.path)
	return ok && (rest == "" || rest[0] == '/')
}

func (r *router) mountOf(path string) mount {
	for _, m := range r.mounts {
		if m.covers(path) {
			return m
		}
	}
	return r.fallback
}

// ServeHTTP implements http.Handler. The record says whose request it is even
// when the surface finds no route for it.
func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m := r.mountOf(req.URL.Path)
	web.RecordOf(req.Context()).SetRoute(m.surface, "other")
	m.handler.ServeHTTP(w, req)
}
