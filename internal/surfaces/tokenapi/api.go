package tokenapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"freshet/api/openapi"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/throttle"
)

// surfaceName is the name of the surface in records and metrics.
const surfaceName = "token"

// Options configures the surface; Issuer, Directory, Sealer, Audiences, Authenticator
// and the parts of the sign-in service are required. There is no Authorizer: the surface exchanges credentials
// for tokens and needs no permissions.
type Options struct {
	// The parts of the sign-in service that exchange the codes, device codes and refresh
	// tokens of users.
	Subjects *signin.Subjects
	Codes    *signin.Codes
	Devices  *signin.Devices
	Grants   *signin.Grants
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
	Instances identity.Instances // nil if there are no data planes
	Lifetime  time.Duration      // lifetime of tokens for the resource API; 0 for the default
	Limits    Limits             // zero values select the defaults
	Auditor   pipeline.Auditor   // nil: no audit records
}

// API serves the token surface.
type API struct {
	opts             Options
	surface          pipeline.Surface
	router           *web.Router[operation]
	discovery        []byte
	clients          *throttle.Limiter
	organizations    *throttle.Limiter
	guard            *throttle.Guard // protects the secrets of clients
	slow             chan struct{}   // semaphore of requests from addresses with too many failures
	devicePerAddress *throttle.Limiter
	deviceTotal      *throttle.Limiter
}

// New returns the surface.
func New(opts Options) (*API, error) {
	if opts.Issuer == nil || opts.Directory == nil || opts.Sealer == nil || len(opts.Audiences) == 0 ||
		opts.Authenticator == nil || opts.Subjects == nil || opts.Codes == nil || opts.Devices == nil ||
		opts.Grants == nil {
		return nil, errors.New("tokenapi: Issuer, Directory, Sealer, Audiences, Authenticator and the parts of " +
			"the sign-in service are required")
	}
	opts.Auditor = pipeline.AuditorOrDiscard(opts.Auditor)
	opts.Limits.complete()
	discovery, err := discoveryDocument(opts.Issuer.URL())
	if err != nil {
		return nil, err
	}
	a := &API{
		opts: opts,
		surface: pipeline.Surface{
			Name: surfaceName, Errors: errorTable{}, BearerOnly: true,
			Options: pipeline.Options{Authenticator: opts.Authenticator, Auditor: opts.Auditor},
		},
		discovery:     discovery,
		clients:       throttle.New(opts.Limits.Client, opts.Limits.MaxTracked),
		slow:          make(chan struct{}, slowChecks),
		organizations: throttle.New(opts.Limits.Issued, opts.Limits.MaxTracked),
		guard: throttle.NewGuard(throttle.GuardRates{
			Address: opts.Limits.Address, AccountByAddress: opts.Limits.Failures, Account: opts.Limits.Guesses,
		}, opts.Limits.MaxTracked),
		devicePerAddress: throttle.New(opts.Limits.Device, opts.Limits.MaxTracked),
		deviceTotal:      throttle.New(opts.Limits.Devices, 1),
	}
	a.router = web.NewRouter(a.routes(), nil)
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

// operation is what a route does.
type operation struct {
	public bool // needs no token; most requests have credentials of clients in their body
	handle func(*call) error
}

// public returns an operation that needs no token.
func public(h web.HandlerFunc) operation {
	return operation{public: true, handle: func(c *call) error { return h(c.W, c.R) }}
}

func (a *API) routes() []web.Route[operation] {
	return []web.Route[operation]{
		{Method: http.MethodPost, Pattern: "/oauth/token", Value: public(a.token)},
		{Pattern: "/oauth/token", Value: public(wrongMethod(http.MethodPost))},
		{Method: http.MethodGet, Pattern: "/oauth/jwks", Value: public(a.serveJWKS)},
		{Method: http.MethodGet, Pattern: pathKeys, Value: public(a.serveJWKS)},
		{Method: http.MethodGet, Pattern: pathDiscovery, Value: public(a.serveDiscovery)},
		{Method: http.MethodGet, Pattern: pathMetadata, Value: public(a.serveDiscovery)},
		{Method: http.MethodPost, Pattern: pathDevice, Value: public(a.beginDevice)},
		{Method: http.MethodPost, Pattern: "/oauth/device/code", Value: public(a.beginDevice)},
		{Method: http.MethodPost, Pattern: pathRevoke, Value: public(a.revoke)},
		{Pattern: pathDevice, Value: public(wrongMethod(http.MethodPost))},
		{Pattern: "/oauth/device/code", Value: public(wrongMethod(http.MethodPost))},
		{Pattern: pathRevoke, Value: public(wrongMethod(http.MethodPost))},
		{Method: http.MethodGet, Pattern: pathUserInfo, Value: operation{handle: (*call).userInfo}},
		{Method: http.MethodPost, Pattern: pathUserInfo, Value: operation{handle: (*call).userInfo}},
		{Method: http.MethodGet, Pattern: "/oauth/openapi.yaml", Value: public(document)},
		{Pattern: "/oauth/...", Value: public(unknownPath)},
	}
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func document(w http.ResponseWriter, _ *http.Request) error {
	web.WriteBody(w, http.StatusOK, "application/yaml", openapi.Document("token"))
	return nil
}

// call is the state of one request.
type call struct {
	pipeline.Call
	api *API
	op  *operation
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pipeline.Serve(&call{
		Call: pipeline.Call{W: w, R: r, Surface: &a.surface, Audiences: a.opts.Accepted},
		api:  a,
	})
}

// Route implements pipeline.Steps.
func (c *call) Route() error {
	var path web.Path
	path.Parse(&url.URL{Path: "/" + strings.TrimLeft(c.R.URL.Path, "/")})
	route := c.api.router.Find(web.MethodOf(c.R), &path)
	if route == nil {
		if allowed := c.api.router.Allowed(&path); allowed != "" {
			return wrongMethod(allowed)(c.W, c.R)
		}
		return unknownPath(c.W, c.R)
	}
	c.SetRoute(route.Pattern)
	if strings.HasSuffix(c.R.URL.Path, "/") {
		// The router ignores a trailing slash, but the path is not one of ours.
		return unknownPath(c.W, c.R)
	}
	c.op, c.Public = &route.Value, route.Value.public
	return nil
}

// Authenticate implements pipeline.Steps.
func (c *call) Authenticate() error {
	if err := c.Call.Authenticate(); err != nil {
		return unauthenticated(err)
	}
	return nil
}

// Authorize implements pipeline.Steps. Every caller may read what its own token says.
func (c *call) Authorize() error { return nil }

// Handle implements pipeline.Steps.
func (c *call) Handle() error { return c.op.handle(c) }

// Audit implements pipeline.Steps. The handlers write the records, before they issue a token:
// a record names the account that the credentials belong to, not the caller of a token.
func (c *call) Audit(error, int) {}
