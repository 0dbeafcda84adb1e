package server

import (
	"net/http"

	"freshet/internal/web"
)

// mount is a surface at a path, and at everything beneath it when the pattern
// says so.
type mount struct {
	surface string
	handler http.Handler
}

func at(pattern, surface string, handler http.Handler) web.Route[mount] {
	return web.Route[mount]{Pattern: pattern, Value: mount{surface, handler}}
}

// router sends a request to its surface by the beginning of its path. Unlike
// http.ServeMux it leaves paths as they are: a surface answers an odd path in
// its own form, and nobody is redirected, which would cost a POST its body. One
// of the mounts has to take everything that the others do not.
type router struct{ mounts *web.Router[mount] }

func newRouter(mounts []web.Route[mount]) router { return router{web.NewRouter(mounts, nil)} }

// ServeHTTP implements http.Handler. The record says whose request it is even
// when the surface finds no route for it.
func (r router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var path web.Path
	path.Parse(req.URL)
	m := &r.mounts.Find(req.Method, &path).Value
	web.RecordOf(req.Context()).SetRoute(m.surface, "other")
	m.handler.ServeHTTP(w, req)
}
