package registryapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/pipeline"
)

// surfaceName is the name of the surface in records and metrics.
const surfaceName = "registry"

// Target is the registry of a request.
type Target struct {
	Registry *schemas.Registry
	// Scope has the organization, instance and cluster of the registry.
	Scope access.Scope
	// Audiences are the names under which it accepts tokens.
	Audiences []string
	// Quota limits the registry's cluster; nil: no limit.
	Quota *quota.Cluster
	// Namespaces looks up the namespaces of the registry's cluster.
	Namespaces Namespaces
	// HonourFormat enables the query parameter format (docs/spec/registry.md#d12).
	HonourFormat bool
}

// FormatKey and FormatHonoured are the key and the value in the custom configuration of
// a cluster that set Target.HonourFormat.
const (
	FormatKey      = "registry.format"
	FormatHonoured = "honour"
)

// Namespaces reports which namespaces a cluster has; messaging.Catalogue implements it.
type Namespaces interface {
	HasNamespace(ctx context.Context, name names.Namespace) (bool, error)
}

// Options configures the surface; Resolver, Authenticator and Authorizer are
// required.
type Options struct {
	pipeline.Options
	Resolver pipeline.Resolver[Target]
	// Timeout limits every call except reads by id, export and import; 0 means 30 s.
	Timeout time.Duration
}

// API serves the registry. It expects paths without the prefix of the mount point: use
// http.StripPrefix if that is not the root.
type API struct {
	opts    Options
	surface pipeline.Surface
	router  *web.Router[endpoint]
}

// New returns the surface. It panics if a required option is missing.
func New(opts Options) *API {
	opts.Complete("registryapi")
	if opts.Resolver == nil {
		panic("registryapi: a Resolver is required")
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	return &API{
		opts:    opts,
		surface: pipeline.Surface{Name: surfaceName, Options: opts.Options, Errors: errorTable{}},
		router:  web.NewRouter(routes, nil),
	}
}

// call is the state of one request.
type call struct {
	pipeline.Call
	api *API

	path  web.Path
	route *web.Route[endpoint]
	Target
	subject string // the subject of the path; "" without one
	media   string // content type of the response
}

// calls reuses call values to save allocations; see BenchmarkHandler.
var calls = sync.Pool{New: func() any { return new(call) }}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call) // the pool has no other type
	defer c.end()
	c.api, c.W, c.R, c.Surface = a, w, r, &a.surface
	pipeline.Serve(c)
}

// end returns the call to the pool.
func (c *call) end() {
	*c = call{}
	calls.Put(c)
}

// Route implements pipeline.Steps. CORS preflight requests do not get here: OPTIONS is a
// plain request.
func (c *call) Route() error {
	if c.R.Method == http.MethodOptions {
		c.route, c.Public = optionsRoute, true
		return nil
	}
	c.path.Parse(c.R.URL)
	if c.route = c.api.router.Find(web.MethodOf(c.R), &c.path); c.route == nil {
		return errNoEndpoint
	}
	c.SetRoute(c.route.Pattern)
	c.Public = c.route.Value.public
	return nil
}

// Resolve implements pipeline.Steps.
func (c *call) Resolve() error {
	if err := pipeline.Resolve(&c.Call, c.api.opts.Resolver, &c.Target); err != nil {
		return credentialsError(err)
	}
	c.Call.Audiences, c.Call.Quota = c.Target.Audiences, c.Target.Quota
	c.Authorization.Scope = c.Scope
	return nil
}

// Authenticate implements pipeline.Steps.
func (c *call) Authenticate() error { return credentialsError(c.Call.Authenticate()) }

// Authorize implements pipeline.Steps. It negotiates the media types first, because clients
// expect these errors before a denial. Endpoints without authorize authorize the caller by
// what they read, or need no permission.
func (c *call) Authorize() error {
	if err := c.negotiate(); err != nil {
		return err
	}
	if authorize := c.route.Value.authorize; authorize != nil {
		return authorize(c)
	}
	return nil
}

// Handle implements pipeline.Steps.
func (c *call) Handle() error {
	if c.Public || c.route.Value.noTimeout {
		return c.route.Value.serve(c)
	}
	ctx, cancel := context.WithTimeout(c.WorkContext(), c.api.opts.Timeout)
	defer cancel()
	c.R = c.R.WithContext(ctx)
	return c.route.Value.serve(c)
}

// optionsRoute is the route of OPTIONS requests on every path.
var optionsRoute = &web.Route[endpoint]{Value: endpoint{serve: (*call).options}}

func (c *call) options() error {
	c.W.Header().Set("Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS")
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

// param returns the value of a path parameter.
func (c *call) param(name string) string { return c.route.Param(&c.path, name) }

// credentialsError returns the registry's own error for a request without a token. It returns
// other errors unchanged.
func credentialsError(err error) error {
	if errors.Is(err, identity.ErrNoToken) || errors.Is(err, pipeline.ErrScheme) ||
		errors.Is(err, pipeline.ErrBasicEncoding) {
		return errNoCredentials
	}
	return err
}

// errNoCredentials is also the error for schemes other than Basic and Bearer.
var errNoCredentials = errs.New(errs.Unauthenticated, "Missing AUTHORIZATION header")
