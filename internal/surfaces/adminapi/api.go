package adminapi

import (
	"net/http"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/pipeline"
)

// Options configures the surface; Resolver, Authenticator and Authorizer are
// required.
type Options struct {
	pipeline.Options
	Resolver brokerhttp.Resolver
	// Accounts looks up the service accounts that roles name. Without it, granting to an
	// account that does not exist returns no warning.
	Accounts Accounts
}

// API serves the administration of clusters.
type API struct {
	opts   Options
	router *web.Router[operation]
	serve  http.Handler
}

// The path prefixes of the surface. It also responds (404) to unknown paths with
// these prefixes.
const (
	adminRoot = "/admin/v2/"
	kafkaRoot = "/rest-stream/admin/v1/"
)

// New returns the surface. It panics if a required option is missing.
func New(opts Options) *API {
	opts.Complete("adminapi")
	if opts.Resolver == nil {
		panic("adminapi: a Resolver is required")
	}
	domains := []string{string(names.Persistent), string(names.NonPersistent)}
	a := &API{opts: opts, router: web.NewRouter(routes(), map[string][]string{"domain": domains})}
	a.serve = http.HandlerFunc(a.dispatch)
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

// dispatch calls the handler of a request and maps its error to a response. It writes
// an audit record for every change, successful or not, and for every denied request.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(access.WithBudget(r.Context())) // list calls authorize every item
	c := &call{Call: brokerhttp.Call{W: w, R: r, Options: &a.opts.Options}, api: a}
	defer c.Release()
	var err error
	status := http.StatusOK
	if refusal := web.Refused(r); refusal != nil {
		err = refusal
	} else {
		err = c.serve()
	}
	if err != nil {
		status = brokerhttp.StatusOf(err, brokerhttp.AdminCalls)
	}
	changes := c.route != nil && r.Method != http.MethodGet
	if changes || pipeline.Denied(status) {
		c.Audit(status)
	}
	if err != nil {
		c.Fail(err, status)
	}
}
