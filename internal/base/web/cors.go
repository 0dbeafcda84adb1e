package web

import (
	"net/http"
	"strings"
)

// CORS lets browsers call a surface from other origins. Tokens are sent in the
// Authorization header and never in cookies, so any configured origin is safe. An empty
// list allows no origin.
type CORS struct {
	Origins []string // exact origins, or "*"
}

// Handle responds to preflight requests and adds CORS headers to responses. exposed are
// the response headers that a page may read; a handler with dynamic ones calls Expose.
func (c CORS) Handle(next http.Handler, exposed ...string) http.Handler {
	expose := strings.Join(append([]string{RequestIDHeader, "Retry-After", "Warning", "WWW-Authenticate"}, exposed...),
		", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || !c.allows(origin) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", expose)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(h, r)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func preflight(h http.Header, r *http.Request) {
	h.Add("Vary", "Access-Control-Request-Method")
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	// Property headers are dynamic (X-Msg-Property-<key>), and "*" does not include
	// Authorization, so all requested headers are allowed.
	if requested := r.Header.Get("Access-Control-Request-Headers"); requested != "" {
		h.Set("Access-Control-Allow-Headers", requested)
	}
	h.Set("Access-Control-Max-Age", "600")
}

func (c CORS) allows(origin string) bool {
	for _, o := range c.Origins {
		if o == "*" || o == origin {
			return true
		}
	}
	return false
}

// Expose adds a header to those that a page may read, if the response has CORS headers.
func Expose(h http.Header, name string) {
	if exposed := h.Get("Access-Control-Expose-Headers"); exposed != "" {
		h.Set("Access-Control-Expose-Headers", exposed+", "+name)
	}
}
