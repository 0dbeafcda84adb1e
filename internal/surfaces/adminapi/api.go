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
	opts    Options
	surface pipeline.Surface
	router  *web.Router[operation]
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
	return &API{
		opts: opts,
		surface: pipeline.Surface{
			Name: brokerhttp.Surface, Options: opts.Options, Errors: brokerhttp.AdminCalls,
		},
		router: web.NewRouter(routes(), map[string][]string{"domain": domains}),
	}
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(access.WithBudget(r.Context())) // list calls authorize every item
	c := &call{api: a}
	c.W, c.R, c.Surface = w, r, &a.surface
	pipeline.Serve(c)
}
