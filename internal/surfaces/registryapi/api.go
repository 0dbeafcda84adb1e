package registryapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/base/workpool"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/pipeline"
)

// surfaceName is the surface's in records and metrics.
const surfaceName = "registry"

// Target is the registry that a request means.
type Target struct {
	Registry *schemas.Registry
	// Scope has the organization, instance and cluster of the registry.
	Scope access.Scope
	// Audiences are the names under which it accepts tokens.
	Audiences []string
	// Quota is what the registry's cluster may take; nil: everything.
	Quota *quota.Cluster
	// Namespaces are those of the registry's cluster.
	Namespaces Namespaces
	// HonourFormat has the query parameter format looked at
	// (docs/spec/registry.md#d12).
	HonourFormat bool
}

// FormatKey and FormatHonoured are how the custom configuration of a cluster
// asks for Target.HonourFormat.
const (
	FormatKey      = "registry.format"
	FormatHonoured = "honour"
)

// Namespaces knows which namespaces a cluster has; messaging.Broker is one.
type Namespaces interface {
	HasNamespace(ctx context.Context, name names.Namespace) (bool, error)
}

// Options configures the surface; Resolver, Authenticator and Authorizer are
// required.
type Options struct {
	pipeline.Options
	Resolver pipeline.Resolver[Target]
	// Timeout bounds every call but reads by id; 0 means 30 s.
	Timeout time.Duration
}

// API serves the registry. The path of a request begins at the mount point: put
// http.StripPrefix before it where that is not the root.
type API struct {
	opts   Options
	router *web.Router[endpoint]
	serve  http.Handler
}

// New makes the surface.
func New(opts Options) *API {
	opts.Complete("registryapi")
	if opts.Resolver == nil {
		panic("registryapi: a Resolver is required")
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	a := &API{opts: opts, router: web.NewRouter(routes, nil)}
	a.serve = web.Handle(a.handle, writeError)
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

// call is one request on its way through an endpoint.
type call struct {
	w   http.ResponseWriter
	r   *http.Request
	api *API

	path  web.Path
	route *web.Route[endpoint]
	Target
	principal *identity.Principal
	media     string // content type of the reply

	asked   pipeline.Asked // what the call needed and what gave it, for its audit record
	changed bool           // something, so that it has one
	held    int64          // room at the limiter for the body
}

// calls keeps those that ended for those that begin: BenchmarkHandler.
var calls = sync.Pool{New: func() any { return new(call) }}

func (a *API) handle(w http.ResponseWriter, r *http.Request) error {
	if refusal := web.Refused(r); refusal != nil {
		return refusal
	}
	c := calls.Get().(*call) // the pool holds nothing else
	defer c.end()
	*c = call{w: w, r: r, api: a}
	err := c.serve()
	c.audit(err)
	return err
}

// end gives back what the call held, and the call.
func (c *call) end() {
	c.api.opts.Limiter.Release(c.who(), c.held)
	*c = call{}
	calls.Put(c)
}

func (c *call) serve() error {
	if c.r.Method == http.MethodOptions {
		// A preflight was answered before; this is someone who just asks.
		c.w.Header().Set("Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS")
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	c.path.Parse(c.r.URL)
	if c.route = c.api.router.Find(web.MethodOf(c.r), &c.path); c.route == nil {
		return errNoEndpoint
	}
	web.RecordOf(c.r.Context()).SetRoute(surfaceName, c.route.Pattern)
	if c.route.Value.open {
		return c.route.Value.serve(c)
	}
	var err error
	if c.Target, err = c.api.opts.Resolver.Resolve(c.r); err != nil {
		return c.disclose(err)
	}
	c.asked.Scope = c.Scope
	if err := c.authenticate(); err != nil {
		return err
	}
	who := c.who()
	if err := c.api.opts.Limiter.Enter(who); err != nil {
		return err
	}
	defer c.api.opts.Limiter.Leave(who)
	if err := c.negotiate(); err != nil {
		return err
	}
	if !c.route.Value.quick {
		ctx, cancel := context.WithTimeout(c.working(), c.api.opts.Timeout)
		defer cancel()
		c.r = c.r.WithContext(ctx)
	}
	return c.route.Value.serve(c)
}

// working is the context for calls that can cost much: it says who has to wait.
func (c *call) working() context.Context {
	return workpool.WithShare(c.r.Context(),
		workpool.Share{Organization: c.principal.Organization, Principal: c.principal.Name})
}

// param returns what the path says for a parameter of the route.
func (c *call) param(name string) string { return c.route.Param(&c.path, name) }

// who is the caller to the limiter.
func (c *call) who() web.Caller {
	if c.principal == nil {
		return web.Caller{}
	}
	return web.Caller{Organization: c.principal.Organization, Principal: c.principal.Name}
}

// disclose returns what to tell the caller about a registry that cannot be had.
func (c *call) disclose(err error) error {
	token := credentials(c.r)
	if token == "" {
		return errNoCredentials
	}
	return pipeline.Disclose(c.r.Context(), c.api.opts.Authenticator, token, err)
}

func (c *call) authenticate() error {
	token := credentials(c.r)
	if token == "" {
		return errNoCredentials
	}
	var err error
	if c.principal, err = c.api.opts.Authenticate(c.r, token, c.Audiences...); err != nil {
		return err
	}
	if c.principal.System || c.Quota == nil {
		return nil
	}
	web.RecordOf(c.r.Context()).Meter = c.Quota
	return c.Quota.Admit()
}

// audit records changes, and whatever was denied; err is the call's outcome.
func (c *call) audit(err error) {
	status := http.StatusOK
	if err != nil {
		number, _ := numberOf(err, "")
		status = statusOf(number)
	}
	if c.changed || pipeline.Denied(status) && errs.KindOf(err) != errs.Exhausted {
		c.api.opts.Auditor.Record(pipeline.Record(c.r, surfaceName, c.principal, c.asked, status))
	}
}

// credentials takes the token out of the Authorization header: a bearer token,
// or the password of basic credentials, whose user name is a placeholder.
func credentials(r *http.Request) string {
	scheme, value, ok := web.Authorization(r)
	switch {
	case !ok:
		return ""
	case strings.EqualFold(scheme, "Bearer"):
		return value
	case !strings.EqualFold(scheme, "Basic"):
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return ""
	}
	_, password, _ := strings.Cut(string(decoded), ":")
	return strings.TrimPrefix(password, "token:")
}

// errNoCredentials is also the answer to other schemes than Basic and Bearer.
var errNoCredentials = errs.New(errs.Unauthenticated, "Missing AUTHORIZATION header")
