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

// Namespaces reports which namespaces a cluster has; messaging.Broker implements it.
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
	opts   Options
	router *web.Router[endpoint]
	serve  http.Handler
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
	a := &API{opts: opts, router: web.NewRouter(routes, nil)}
	a.serve = web.Handle(a.handle, writeError)
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

// call is the state of one request.
type call struct {
	w   http.ResponseWriter
	r   *http.Request
	api *API

	path  web.Path
	route *web.Route[endpoint]
	Target
	principal *identity.Principal
	media     string // content type of the response

	authorization pipeline.Authorization // the last permission check, for the audit record
	changed       bool                   // the call has changed the registry, so it gets an audit record
	reserved      int64                  // bytes that the body has reserved at the limiter
}

// calls reuses call values to save allocations; see BenchmarkHandler.
var calls = sync.Pool{New: func() any { return new(call) }}

func (a *API) handle(w http.ResponseWriter, r *http.Request) error {
	if refusal := web.Refused(r); refusal != nil {
		return refusal
	}
	c := calls.Get().(*call) // the pool has no other type
	defer c.end()
	*c = call{w: w, r: r, api: a}
	err := c.serve()
	c.audit(err)
	return err
}

// end releases the call's reserved memory and returns the call to the pool.
func (c *call) end() {
	c.api.opts.Limiter.Release(c.caller(), c.reserved)
	*c = call{}
	calls.Put(c)
}

func (c *call) serve() error {
	if c.r.Method == http.MethodOptions {
		// CORS preflight requests do not get here; this is a plain OPTIONS request.
		c.w.Header().Set("Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS")
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	c.path.Parse(c.r.URL)
	if c.route = c.api.router.Find(web.MethodOf(c.r), &c.path); c.route == nil {
		return errNoEndpoint
	}
	web.RecordOf(c.r.Context()).SetRoute(surfaceName, c.route.Pattern)
	if c.route.Value.public {
		return c.route.Value.serve(c)
	}
	var err error
	if c.Target, err = c.api.opts.Resolver.Resolve(c.r); err != nil {
		return c.disclose(err)
	}
	c.authorization.Scope = c.Scope
	if err := c.authenticate(); err != nil {
		return err
	}
	caller := c.caller()
	if err := c.api.opts.Limiter.Enter(caller); err != nil {
		return err
	}
	defer c.api.opts.Limiter.Leave(caller)
	if err := c.negotiate(); err != nil {
		return err
	}
	if !c.route.Value.noTimeout {
		ctx, cancel := context.WithTimeout(c.workContext(), c.api.opts.Timeout)
		defer cancel()
		c.r = c.r.WithContext(ctx)
	}
	return c.route.Value.serve(c)
}

// workContext returns the context for expensive calls. It names the organization and the
// principal, so that the work pool can share its capacity fairly.
func (c *call) workContext() context.Context {
	return workpool.WithCaller(c.r.Context(),
		workpool.Caller{Organization: c.principal.Organization, Principal: c.principal.Name})
}

// param returns the value of a path parameter.
func (c *call) param(name string) string { return c.route.Param(&c.path, name) }

// caller returns the caller for the limiter. It is the zero Caller before authenticate.
func (c *call) caller() web.Caller {
	if c.principal == nil {
		return web.Caller{}
	}
	return web.Caller{Organization: c.principal.Organization, Principal: c.principal.Name}
}

// disclose returns the error that the caller may see about a registry that cannot be
// resolved.
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

// audit writes an audit record for changes and for denied calls; err is the error of the
// call.
func (c *call) audit(err error) {
	status := http.StatusOK
	if err != nil {
		number, _ := numberOf(err, "")
		status = statusOf(number)
	}
	if c.changed || pipeline.Denied(status) && errs.KindOf(err) != errs.Exhausted {
		c.api.opts.Auditor.Record(pipeline.Record(c.r, surfaceName, c.principal, c.authorization, status))
	}
}

// credentials returns the token of the Authorization header: a bearer token, or the
// password of basic credentials, whose user name is ignored.
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

// errNoCredentials is also the error for schemes other than Basic and Bearer.
var errNoCredentials = errs.New(errs.Unauthenticated, "Missing AUTHORIZATION header")
