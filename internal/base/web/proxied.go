package web

import (
	"net/http"

	"freshet/internal/base/proxies"
)

// FromProxies sets the RemoteAddr of requests from trusted proxies to the address of the client,
// so that limits, audit records and logs are about the client. It removes X-Forwarded-For and
// X-Real-Ip from all requests, so that no later part uses what a client has made up.
func FromProxies(next http.Handler, trusted proxies.Set) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forwarded, ok := r.Header["X-Forwarded-For"]; ok {
			r.RemoteAddr = trusted.Client(r.RemoteAddr, forwarded)
			delete(r.Header, "X-Forwarded-For")
		}
		delete(r.Header, "X-Real-Ip")
		next.ServeHTTP(w, r)
	})
}
