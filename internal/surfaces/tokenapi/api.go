package tokenapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"freshet/api/openapi"
	"freshet/internal/base/lru"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/throttle"
)

// surfaceName is the name of the surface in records and metrics.
const surfaceName = "token"

// Options configures the surface; Issuer, Directory, Sealer, Audiences, People and
// Authenticator are required. There is no Authorizer: the surface exchanges credentials
// for tokens and needs no permissions.
type Options struct {
	// SignIn exchanges the codes, device codes and refresh tokens of users.
	SignIn *signin.Service
	// Authenticator verifies the tokens of userinfo and revocation requests.
	Authenticator pipeline.Authenticator
	// Accepted are the audiences of tokens that userinfo and revocation accept.
	Accepted  []string
	Issuer    *identity.Issuer
	Directory *identity.Directory
	Sealer    *identity.Sealer
	// Audiences are the addresses of the resource API. The first one is its
	// base URL: the default, and an audience of every token for it.
	Audiences []string
	Instances identity.Instances         // nil if there are no data planes
	Lifetime  time.Duration              // lifetime of tokens for the resource API; 0 for the default
	Limits    Limits                     // zero values select the defaults
	Source    func(*http.Request) string // returns the caller's address; nil for that of the connection
	Auditor   pipeline.Auditor           // nil: no audit records
}

// API serves the token surface.
type API struct {
	opts             Options
	router           *web.Router[web.HandlerFunc]
	serve            http.Handler
	discovery        []byte
	clients          *throttle.Limiter
	addresses        *throttle.Limiter
	failures         *throttle.Limiter
	guesses          *throttle.Limiter
	devicePerAddress *throttle.Limiter
	deviceTotal      *throttle.Limiter
	owners           *lru.Cache[string, struct{}] // pairs of client id and address that have got a token
}

// New returns the surface.
func New(opts Options) (*API, error) {
	if opts.Issuer == nil || opts.Directory == nil || opts.Sealer == nil || len(opts.Audiences) == 0 ||
		opts.SignIn == nil || opts.Authenticator == nil {
		return nil, errors.New(
			"tokenapi: Issuer, Directory, Sealer, Audiences, People and Authenticator are required")
	}
	if opts.Source == nil {
		opts.Source = func(r *http.Request) string { return r.RemoteAddr }
	}
	opts.Auditor = pipeline.AuditorOrDiscard(opts.Auditor)
	opts.Limits.complete()
	discovery, err := discoveryDocument(opts.Issuer.URL())
	if err != nil {
		return nil, err
	}
	a := &API{
		opts:             opts,
		discovery:        discovery,
		clients:          throttle.New(opts.Limits.Client, opts.Limits.MaxTracked),
		addresses:        throttle.New(opts.Limits.Address, opts.Limits.MaxTracked),
		failures:         throttle.New(opts.Limits.Failures, opts.Limits.MaxTracked),
		guesses:          throttle.New(opts.Limits.Guesses, opts.Limits.MaxTracked),
		devicePerAddress: throttle.New(opts.Limits.Device, opts.Limits.MaxTracked),
		deviceTotal:      throttle.New(opts.Limits.Devices, 1),
		owners:           lru.New[string, struct{}](int64(opts.Limits.MaxTracked)),
	}
	a.router = web.NewRouter(a.routes(), nil)
	a.serve = web.Handle(a.handle, writeError)
	return a, nil
}

// The paths of user clients, and the documents outside /oauth.
const (
	pathDevice    = "/oauth/device_authorization"
	pathRevoke    = "/oauth/revoke"
	pathUserInfo  = "/oauth/userinfo"
	pathKeys      = "/.well-known/jwks.json"
	pathDiscovery = "/.well-known/openid-configuration"
	pathMetadata  = "/.well-known/oauth-authorization-server"
)

// Patterns returns the paths of the surface, for the router that it is mounted on. The
// surface serves everything under /oauth, including unknown paths and wrong methods.
//
// Paths may begin with more than one slash: a client gets such a path when it joins an
// issuer that ends in a slash and a path that begins with one.
func Patterns() []string {
	var list []string
	for _, path := range []string{"/oauth/...", pathKeys, pathDiscovery, pathMetadata} {
		list = append(list, path, "/"+path, "//"+path)
	}
	return list
}

func (a *API) routes() []web.Route[web.HandlerFunc] {
	return []web.Route[web.HandlerFunc]{
		{Method: http.MethodPost, Pattern: "/oauth/token", Value: a.token},
		{Pattern: "/oauth/token", Value: wrongMethod(http.MethodPost)},
		{Method: http.MethodGet, Pattern: "/oauth/jwks", Value: a.serveJWKS},
		{Method: http.MethodGet, Pattern: pathKeys, Value: a.serveJWKS},
		{Method: http.MethodGet, Pattern: pathDiscovery, Value: a.serveDiscovery},
		{Method: http.MethodGet, Pattern: pathMetadata, Value: a.serveDiscovery},
		{Method: http.MethodPost, Pattern: pathDevice, Value: a.beginDevice},
		{Method: http.MethodPost, Pattern: "/oauth/device/code", Value: a.beginDevice},
		{Method: http.MethodPost, Pattern: pathRevoke, Value: a.revoke},
		{Pattern: pathDevice, Value: wrongMethod(http.MethodPost)},
		{Pattern: "/oauth/device/code", Value: wrongMethod(http.MethodPost)},
		{Pattern: pathRevoke, Value: wrongMethod(http.MethodPost)},
		{Method: http.MethodGet, Pattern: pathUserInfo, Value: a.userInfo},
		{Method: http.MethodPost, Pattern: pathUserInfo, Value: a.userInfo},
		{Method: http.MethodGet, Pattern: "/oauth/openapi.yaml", Value: document},
		{Pattern: "/oauth/...", Value: unknownPath},
	}
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func document(w http.ResponseWriter, _ *http.Request) error {
	web.WriteBody(w, http.StatusOK, "application/yaml", openapi.Document("token"))
	return nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

func (a *API) handle(w http.ResponseWriter, r *http.Request) error {
	if refusal := web.Refused(r); refusal != nil {
		return &oauthError{status: refusal.Status, code: "invalid_request", text: refusal.Text, cause: errRequest}
	}
	var path web.Path
	path.Parse(&url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/")})
	route := a.router.Find(web.MethodOf(r), &path)
	if route == nil {
		if allowed := a.router.Allowed(&path); allowed != "" {
			return wrongMethod(allowed)(w, r)
		}
		return unknownPath(w, r)
	}
	web.RecordOf(r.Context()).SetRoute(surfaceName, route.Pattern)
	if strings.HasSuffix(r.URL.Path, "/") {
		return unknownPath(w, r) // the router ignores a trailing slash, but the path is not one of ours
	}
	return route.Value(w, r)
}
