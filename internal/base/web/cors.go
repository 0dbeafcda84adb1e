package web

import (
	"net/http"
	"strings"
)

// CORS lets browsers call a surface from other origins. Tokens travel in the
// Authorization header and never in cookies, so any configured origin is safe;
// an empty list allows none.
type CORS struct {
	Origins []string // exact origins, or "*"
}

// Handle answers preflights and marks responses. exposed names the response
// headers a page may read; a handler with dynamic ones calls Expose.
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
	// Property headers are dynamic (X-Msg-Property-<key>), and "*" does not
	// cover Authorization, so what is asked for is what is allowed.
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
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

// Expose adds a response header's name to those a page may read, when CORS is
// in play for this response.
func Expose(h http.Header, name string) {
	if exposed := h.Get("Access-Control-Expose-Headers"); exposed != "" {
		h.Set("Access-Control-Expose-Headers", exposed+", "+name)
	}
}
