package messageapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"freshet/internal/access"
	"freshet/internal/audit"
	"freshet/internal/identity"
	"freshet/internal/messaging"
	"freshet/internal/web"
)

// Cluster is what a request is for.
type Cluster struct {
	Broker *messaging.Broker
	// Scope has the organization, instance and cluster; calls add the rest.
	Scope access.Scope
	// Audiences are the names under which the cluster accepts tokens.
	Audiences []string
}

// Resolver finds the cluster a request is for, by its host. An error of kind
// NotFound is answered with 404.
type Resolver func(*http.Request) (Cluster, error)

// Verifier tells whose a token is.
type Verifier interface {
	Verify(ctx context.Context, token string, audiences ...string) (*identity.Principal, error)
}

// Policy tells what a caller may do; a denial is an error of kind Denied.
type Policy interface {
	Authorize(ctx context.Context, who *identity.Principal, perm access.Permission, scope access.Scope) (access.Decision, error)
}

// Auditor keeps the record of every administrative change and of every call
// that was denied.
type Auditor interface {
	Record(audit.Record)
}

// Options configures the surface; Resolve, Verifier and Policy are required.
type Options struct {
	Resolve  Resolver
	Verifier Verifier
	Policy   Policy
	Auditor  Auditor   // nil: nobody listens
	CORS     web.CORS  // no origins: no browsers from elsewhere
	Gate     *web.Gate // nil: no bounds; calls that may wait have the broker's own
	// WriteTimeout is for a client to take what it is sent; 0 means a minute.
	WriteTimeout time.Duration
}

// API serves spec 2.
type API struct {
	opts   Options
	routes *table
	serve  http.Handler
}

// New makes the surface.
func New(opts Options) *API {
	if opts.WriteTimeout == 0 {
		opts.WriteTimeout = time.Minute
	}
	a := &API{opts: opts, routes: newTable(adminRoutes())}
	a.serve = opts.CORS.Handle(http.HandlerFunc(a.dispatch), exposedHeaders...)
	return a
}

// The roots of the surface. Everything beneath them is ours, including what
// does not exist.
const (
	messageRoot = "/admin/rest/topics/v1/"
	adminRoot   = "/admin/v2/"
	streamRoot  = "/rest-stream/admin/v1/"

	documentPath = "/admin/rest/openapi.yaml"
)

// Mount puts the surface on a mux.
func (a *API) Mount(mux *http.ServeMux) {
	mux.Handle("/admin/", a)
	mux.Handle("/rest-stream/", a)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

// dispatch sends a request to its handler and what went wrong to the table of
// errors.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call) // the pool holds nothing else
	defer c.end()
	*c = call{api: a, w: w, r: r}
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// calls keeps those that ended for those that begin.
var calls = sync.Pool{New: func() any { return new(call) }}

// end gives back what the call held, and the call.
func (c *call) end() {
	c.api.opts.Gate.Release(c.held)
	*c = call{}
	calls.Put(c)
}
