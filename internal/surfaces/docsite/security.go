package docsite

import (
	"net/http"
	"time"
)

// PathSecurity is the path of security.txt (RFC 9116).
const PathSecurity = "/.well-known/security.txt"

// securityLifetime is how long a copy of security.txt is valid. The file requires an end; the server writes a
// new one for each request.
const securityLifetime = 30 * 24 * time.Hour

// SecurityText returns a handler of security.txt with the contact of the configuration, a URI. Without a contact
// it responds with 404.
func SecurityText(contact string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "security.txt supports only GET and HEAD.")
			return
		case contact == "":
			refuse(w, http.StatusNotFound, "The operator of this server has not set securityContact.")
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Content-Type-Options", "nosniff")
		expires := time.Now().Add(securityLifetime).UTC().Format(time.RFC3339)
		// The client has disconnected if this fails.
		_, _ = w.Write([]byte("Contact: " + contact + "\nExpires: " + expires + "\nPreferred-Languages: en\n"))
	})
}
