package server

import (
	"net/http"
	"strings"

	"freshet/console"
	"freshet/internal/base/web"
)

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
