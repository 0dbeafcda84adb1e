package server

import (
	"net/http"

	"freshet/console"
	"freshet/internal/base/web"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/signinapi"
	"freshet/internal/surfaces/systemapi"
	"freshet/internal/surfaces/tokenapi"
)

// handlers are the surfaces that requests are sent to. There are two sets: one
// that refuses, while the server starts, and the real one.
type handlers struct {
	// of a cluster; the registry at the root and under /stream
	messages, admin, registry, streamRegistry http.Handler
	// of the server; root is the registry, and a page for browsers
	root, audit, system, tokens, pages, resources, health http.Handler
	// the pages for people, which need nothing of the server to be sent
	console http.Handler
}

// mounts says which paths belong to which surface; each surface owns its unknown
// paths. The registry has the root, as its clients expect.
func mounts(h *handlers, cors web.CORS) []web.Route[mount] {
	list := append(clusterMounts(h, h.root),
		at(clusterPattern, "clusters", clusterPath{newRouter(clusterMounts(h, h.registry), cors)}),
		at(auditapi.Root+"/...", "audit", h.audit),
		at(systemapi.Root+"/...", "system", h.system),
		at(console.Root+"/...", "console", h.console),
	)
	for _, pattern := range tokenapi.Patterns() {
		list = append(list, at(pattern, "token", h.tokens))
	}
	for _, pattern := range signinapi.Patterns() {
		list = append(list, at(pattern, surfacePages, h.pages))
	}
	for _, path := range []string{"/apis", "/api", "/openapi"} {
		list = append(list, at(path+"/...", "resources", h.resources))
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		list = append(list, at(path+"/...", "resources", h.health))
	}
	return list
}

// clusterMounts are the surfaces of a cluster, wherever it answers.
func clusterMounts(h *handlers, root http.Handler) []web.Route[mount] {
	return []web.Route[mount]{
		at("/admin/rest/...", "messages", h.messages),
		at("/admin/...", "messages", h.admin),
		at("/rest-stream/...", "messages", h.admin),
		at("/stream/...", "registry", h.streamRegistry),
		at("/...", "registry", root),
	}
}

// surfacePages is the surface on which people sign in.
const surfacePages = "signin"

// exposed are the response headers of a surface that pages of other origins may
// read, besides those of every surface.
var exposed = map[string][]string{
	"messages": messageapi.ExposedHeaders(),
	"registry": {"ETag"},
}

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

// newRouter puts CORS around every mount: a preflight carries no credentials, so
// no surface may ask for any before it is answered.
func newRouter(mounts []web.Route[mount], cors web.CORS) router {
	for i := range mounts {
		m := &mounts[i].Value
		if _, nested := m.handler.(clusterPath); nested || m.surface == surfacePages {
			continue // its own mounts have it; pages on which people sign in are for no other page
		}
		m.handler = cors.Handle(m.handler, exposed[m.surface]...)
	}
	return router{web.NewRouter(mounts, nil)}
}

// ServeHTTP implements http.Handler. The record says whose request it is even
// when the surface finds no route for it.
func (r router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var path web.Path
	path.Parse(req.URL)
	m := &r.mounts.Find(req.Method, &path).Value
	web.RecordOf(req.Context()).SetRoute(m.surface, "other")
	m.handler.ServeHTTP(w, req)
}
