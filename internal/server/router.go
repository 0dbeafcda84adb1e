package server

import (
	"net/http"
	"strings"

	"freshet/console"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/pools"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/clusterpath"
	"freshet/internal/surfaces/docsite"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/registryapi"
	"freshet/internal/surfaces/signinapi"
	"freshet/internal/surfaces/systemapi"
	"freshet/internal/surfaces/tokenapi"
)

// handlers contains a handler for each surface. There are two sets: refusingHandlers rejects
// all requests while the server starts, the other set serves them.
type handlers struct {
	// surfaces of a cluster; the registry at the root and under /stream
	messages, admin, registry, prefixedRegistry http.Handler
	// surfaces of the server; root is the registry, and redirects browsers to the console
	root, audit, system, tokens, pages, resources, health http.Handler
	// the contact for reports of vulnerabilities
	security http.Handler
	// static files of the console and the documentation, which are also served while the server starts
	console, docs http.Handler
}

// clusterPattern is the path of a cluster on every host (docs/spec/resources.md#addresses).
const clusterPattern = pools.PathPrefix + "/{organization}/{cluster}/..."

// mounts returns the routes from paths to surfaces. Each surface handles the unknown paths
// below its own. The registry is at the root, because its clients expect it there.
func mounts(h *handlers, cors web.CORS) []web.Route[mount] {
	list := append(clusterMounts(h, h.root),
		mountAt(clusterPattern, "clusters",
			clusterpath.Handler{Surfaces: newRouter(clusterMounts(h, h.registry), cors)}),
		mountAt(auditapi.Root+"/...", "audit", h.audit),
		mountAt(systemapi.Root+"/...", "system", h.system),
		mountAt(console.Root+"/...", "console", h.console),
		mountAt(docsite.Root+"/...", "docs", h.docs),
		mountAt(docsite.PathSecurity, "docs", h.security),
	)
	for _, pattern := range tokenapi.Patterns() {
		list = append(list, mountAt(pattern, "token", h.tokens))
	}
	for _, pattern := range signinapi.Patterns() {
		list = append(list, mountAt(pattern, surfacePages, h.pages))
	}
	for _, path := range []string{"/apis", "/api", "/openapi"} {
		list = append(list, mountAt(path+"/...", "resources", h.resources))
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		list = append(list, mountAt(path+"/...", "resources", h.health))
	}
	return list
}

// clusterMounts returns the routes to the surfaces of a cluster. They are the same for a
// cluster that is addressed by host and one that is addressed by path.
func clusterMounts(h *handlers, root http.Handler) []web.Route[mount] {
	return []web.Route[mount]{
		mountAt("/admin/rest/...", "messages", h.messages),
		mountAt("/admin/...", "messages", h.admin),
		mountAt("/rest-stream/...", "messages", h.admin),
		mountAt("/stream/...", "registry", h.prefixedRegistry),
		mountAt("/...", "registry", root),
	}
}

// surfacePages is the surface of the sign-in pages.
const surfacePages = "signin"

// exposedHeaders are the response headers of a surface that pages of other origins may read (CORS),
// in addition to those of every surface.
var exposedHeaders = map[string][]string{
	"messages": messageapi.ExposedHeaders(),
	"registry": {"ETag"},
}

// mount is a surface at a path, or at a path and everything below it.
type mount struct {
	surface string
	handler http.Handler
}

func mountAt(pattern, surface string, handler http.Handler) web.Route[mount] {
	return web.Route[mount]{Pattern: pattern, Value: mount{surface, handler}}
}

// router routes a request to its surface by the prefix of its path. Unlike http.ServeMux it
// does not clean paths and does not redirect, because a redirect would lose the body of a
// POST; each surface responds to malformed paths in its own format. One of the mounts must
// match every path.
type router struct{ mounts *web.Router[mount] }

// newRouter returns a router that handles CORS before every mount. A preflight request has no
// credentials, so it must be handled before a surface requires them.
func newRouter(mounts []web.Route[mount], cors web.CORS) router {
	for i := range mounts {
		m := &mounts[i].Value
		if _, nested := m.handler.(clusterpath.Handler); nested || m.surface == surfacePages {
			continue // the nested router handles CORS; other origins must not read sign-in pages
		}
		m.handler = cors.Handle(m.handler, exposedHeaders[m.surface]...)
	}
	return router{web.NewRouter(mounts, nil)}
}

// ServeHTTP implements http.Handler. It sets the surface in the request's record, so that
// the log has it even if the surface has no route for the path.
func (r router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var path web.Path
	path.Parse(req.URL)
	m := &r.mounts.Find(req.Method, &path).Value
	web.RecordOf(req.Context()).SetRoute(m.surface, "other")
	m.handler.ServeHTTP(w, req)
}

// refusingHandlers returns surfaces that reject all requests with the error why, for a server
// that is starting or has lost its lease. Only health, the console and the documentation work.
func refusingHandlers(why error, health http.Handler) *handlers {
	refuse := func(write web.ErrorWriter) http.Handler {
		return web.Handle(func(http.ResponseWriter, *http.Request) error { return why }, write)
	}
	registry := refuse(registryapi.Refuse)
	return &handlers{
		messages: refuse(brokerhttp.Refuse), admin: refuse(brokerhttp.Refuse), registry: registry,
		prefixedRegistry: registry, root: registry,
		audit: refuse(auditapi.Refuse), system: refuse(systemapi.Refuse), tokens: refuse(tokenapi.Refuse),
		pages: refuse(signinapi.Refuse), resources: refuse(apiserver.RespondUnavailable), health: health,
		security: registry, console: consolePages(), docs: documentation(),
	}
}

// frontPage redirects browsers from the root to the console. Other clients get the response
// of the registry.
func frontPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browser := strings.Contains(r.Header.Get("Accept"), "text/html")
		if r.URL.Path != "/" || (r.Method != http.MethodGet && r.Method != http.MethodHead) || !browser {
			next.ServeHTTP(w, r)
			return
		}
		web.RecordOf(r.Context()).SetRoute("console", "/")
		h := w.Header()
		h.Add("Vary", "Accept")
		h.Set("Cache-Control", "no-cache")
		h.Set("Location", console.Root+"/")
		w.WriteHeader(http.StatusFound)
	})
}

// consolePages returns the handler of the console's files, with one route for files that
// never change and one for the views.
func consolePages() http.Handler {
	pages := console.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := console.Root + "/..."
		if strings.HasPrefix(r.URL.Path, console.Root+"/-/") {
			route = console.Root + "/-/..."
		}
		web.RecordOf(r.Context()).SetRoute("console", route)
		pages.ServeHTTP(w, r)
	})
}

// documentation returns the handler of the documentation, with one route for all pages.
func documentation() http.Handler {
	pages := docsite.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.RecordOf(r.Context()).SetRoute("docs", docsite.Root+"/...")
		pages.ServeHTTP(w, r)
	})
}
