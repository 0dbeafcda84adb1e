package tokenapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"freshet/internal/audit"
	"freshet/internal/identity"
	"freshet/internal/web"
)

const surface = "token"

// Instances knows the data planes that tokens can be made for.
type Instances interface {
	// TokenLifetime returns how long access tokens of an instance live (0 for
	// the default), and whether there is such an instance.
	TokenLifetime(organization, instance string) (time.Duration, bool)
}

// Options are what the API works with. Issuer, Directory, Sealer and Audiences
// are required.
type Options struct {
	Issuer    *identity.Issuer
	Directory *identity.Directory
	Sealer    *identity.Sealer
	// Audiences are the addresses of the resource API. The first one is its
	// base URL: the default, and an audience of every token for it.
	Audiences []string
	Instances Instances                  // nil when there are no data planes
	Lifetime  time.Duration              // of tokens for the resource API; 0 for the default
	Limits    Limits                     // zero values are the defaults
	Source    func(*http.Request) string // the caller's address; nil for the connection's
	Audit     func(audit.Record)         // nil for none
	CORS      web.CORS
}

// API serves the token surface.
type API struct {
	opts      Options
	discovery []byte
	clients   *limiter
	addresses *limiter
	failures  *limiter
}

// New makes the API.
func New(opts Options) (*API, error) {
	if opts.Issuer == nil || opts.Directory == nil || opts.Sealer == nil || len(opts.Audiences) == 0 {
		return nil, errors.New("tokenapi: issuer, directory, sealer and an audience are required")
	}
	if opts.Source == nil {
		opts.Source = func(r *http.Request) string { return r.RemoteAddr }
	}
	if opts.Audit == nil {
		opts.Audit = func(audit.Record) {}
	}
	opts.Limits.complete()
	discovery, err := discoveryDocument(opts.Issuer.URL())
	if err != nil {
		return nil, err
	}
	return &API{
		opts:      opts,
		discovery: discovery,
		clients:   newLimiter(opts.Limits.Client, opts.Limits.Remembered),
		addresses: newLimiter(opts.Limits.Address, opts.Limits.Remembered),
		failures:  newLimiter(opts.Limits.Failures, opts.Limits.Remembered),
	}, nil
}

// Mount adds the surface's routes. Everything under /oauth is its own, unknown
// paths and wrong methods included.
func (a *API) Mount(mux *http.ServeMux) {
	routes := map[string]web.HandlerFunc{
		"POST /oauth/token":                           a.token,
		"/oauth/token":                                wrongMethod(http.MethodPost),
		"GET /oauth/jwks":                             a.serveJWKS,
		"GET /.well-known/jwks.json":                  a.serveJWKS,
		"GET /.well-known/openid-configuration":       a.serveDiscovery,
		"GET /.well-known/oauth-authorization-server": a.serveDiscovery,
		"/oauth/authorize":                            noSignIn,
		"/oauth/device/code":                          noDevices,
		"/oauth":                                      unknownPath,
		"/oauth/":                                     unknownPath,
	}
	for pattern, handler := range routes {
		served, route := web.Handle(handler, writeError), pattern[strings.IndexByte(pattern, '/'):]
		mux.Handle(pattern, a.opts.CORS.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			web.RecordOf(r.Context()).SetRoute(surface, route)
			served.ServeHTTP(w, r)
		})))
	}
}

// Normalize serves paths of this surface that begin with two slashes, as they
// do when a client joins an issuer that ends in a slash and a path that begins
// with one. Put it around the mux, which would redirect, and a redirected POST
// loses its body.
func Normalize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "//") {
			path := "/" + strings.TrimLeft(r.URL.Path, "/")
			if strings.HasPrefix(path, "/.well-known/") || strings.HasPrefix(path, "/oauth/") {
				r2 := r.Clone(r.Context())
				r2.URL.Path, r2.URL.RawPath = path, ""
				r = r2
			}
		}
		next.ServeHTTP(w, r)
	})
}
