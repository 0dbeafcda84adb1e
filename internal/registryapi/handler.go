package registryapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"freshet/internal/access"
	"freshet/internal/audit"
	"freshet/internal/errs"
	"freshet/internal/identity"
	"freshet/internal/schemas"
	"freshet/internal/web"
)

// Target is the registry that a request means.
type Target struct {
	Registry *schemas.Registry
	Scope    access.Scope // organization, instance and cluster of the registry
}

// Resolver finds the registry that a request means, by its Host.
type Resolver interface {
	Resolve(r *http.Request) (Target, error)
}

// Authenticator verifies a token for a target. Its refusals are of kind
// Unauthenticated.
type Authenticator interface {
	Authenticate(ctx context.Context, token string, target access.Scope) (*identity.Principal, error)
}

// Authorizer says what gives the principal the permission on the scope; its
// refusals are of kind Denied. access.Policy is one.
type Authorizer interface {
	Authorize(ctx context.Context, p *identity.Principal, permission access.Permission, scope access.Scope) (access.Decision, error)
}

// Auditor is told of changes and of whatever was denied.
type Auditor interface {
	Record(r audit.Record)
}

// Options are what a Handler works with; the first three are required.
type Options struct {
	Resolver      Resolver
	Authenticator Authenticator
	Authorizer    Authorizer
	Auditor       Auditor
	CORS          web.CORS
	Gate          *web.Gate // nil: no bounds
	// Timeout bounds every call but reads by id; 0 means 30 s.
	Timeout time.Duration
}

// Handler serves the registry. The path of a request begins at the mount
// point: put http.StripPrefix before it where that is not the root.
type Handler struct {
	opts  Options
	serve http.Handler
}

// New makes the handler.
func New(opts Options) *Handler {
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	h := &Handler{opts: opts}
	h.serve = opts.CORS.Handle(web.Handle(h.handle, writeError), "ETag")
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.serve.ServeHTTP(w, r) }

// call is one request on its way through an endpoint.
type call struct {
	w http.ResponseWriter
	r *http.Request
	h *Handler

	segments [maxSegments]string // of the path, decoded
	Target
	principal *identity.Principal
	media     string // content type of the reply

	// For the audit record: what the call needed and on what, and whether it
	// changed something.
	permission access.Permission
	decision   access.Decision // what allowed it
	scope      access.Scope
	changed    bool

	held int64 // room at the gate for the body
}

var calls = sync.Pool{New: func() any { return new(call) }}

func (h *Handler) handle(w http.ResponseWriter, r *http.Request) error {
	if err := h.opts.Gate.Enter(); err != nil {
		return err
	}
	defer h.opts.Gate.Leave()
	c := calls.Get().(*call) // the pool holds nothing else
	defer c.end()
	*c = call{w: w, r: r, h: h}
	err := c.serve()
	c.audit(err)
	return err
}

// end gives back what the call held, and the call.
func (c *call) end() {
	c.h.opts.Gate.Release(c.held)
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
	route := c.route()
	if route == nil {
		return errNoEndpoint
	}
	web.RecordOf(c.r.Context()).SetRoute("registry", route.pattern)
	var err error
	if c.Target, err = c.h.opts.Resolver.Resolve(c.r); err != nil {
		return err
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	if err := c.negotiate(route); err != nil {
		return err
	}
	if !route.quick {
		ctx, cancel := context.WithTimeout(c.r.Context(), c.h.opts.Timeout)
		defer cancel()
		c.r = c.r.WithContext(ctx)
	}
	return route.serve(c)
}

func (c *call) authenticate() error {
	token := credentials(c.r)
	if token == "" {
		return errNoCredentials
	}
	principal, err := c.h.opts.Authenticator.Authenticate(c.r.Context(), token, c.Scope)
	if err != nil {
		return err
	}
	c.principal = principal
	web.RecordOf(c.r.Context()).Principal = principal.Name
	return nil
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
