// Package auditapi is the HTTP surface that reads the audit trail: the latest records of
// an organization, newest first, with filters.
//
// It owns the paths, queries and response bodies. It does not write records: the other
// surfaces do, and audit stores them. pipeline runs the steps of a request. The limiter does
// not count the calls: an auditor needs the records while the server is busy. A server
// returns only the records that it wrote itself. The package has no locks.
package auditapi

import (
	"context"
	"net/http"
	"time"

	"freshet/api/openapi"
	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
)

// Root is the path prefix of the surface. It also responds (404) to unknown paths below
// it.
const Root = "/audit"

const (
	recordsPath  = Root + "/v1alpha1/records"
	documentPath = Root + "/v1alpha1/openapi.yaml"

	surfaceName = "audit" // in records and metrics
)

// Trail returns stored records; audit.Log implements it.
type Trail interface {
	Tail(ctx context.Context, q audit.Query) ([]audit.Record, error)
}

// Options configures the surface; Authenticator and Authorizer are required.
type Options struct {
	pipeline.Options
	// Audiences are the names under which tokens are accepted: those of the
	// resource API.
	Audiences []string
	// Trail is nil if the configuration disables the audit trail; then the surface
	// responds with 404.
	Trail Trail
}

// API serves the audit trail.
type API struct {
	opts    Options
	surface pipeline.Surface
	router  *web.Router[operation]
}

// operation is what a route does.
type operation struct {
	public    bool // needs no token
	authorize func(*call) error
	handle    func(*call) error
}

// New returns the surface. It panics if a required option is missing.
func New(opts Options) *API {
	opts.Complete("auditapi")
	return &API{
		opts: opts,
		surface: pipeline.Surface{
			Name: surfaceName, Options: opts.Options, Errors: errorTable, BearerOnly: true,
		},
		router: web.NewRouter([]web.Route[operation]{
			{
				Method: http.MethodGet, Pattern: recordsPath,
				Value: operation{authorize: (*call).authorizeQuery, handle: (*call).records},
			},
			{Method: http.MethodGet, Pattern: documentPath, Value: operation{public: true, handle: (*call).document}},
		}, nil),
	}
}

// errorTable is the surface's one table from errors to responses.
const errorTable = pipeline.StatusErrors(surfaceName)

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error) { errorTable.Refuse(w, r, err) }

var errDisabled = errs.New(errs.NotFound, "audit trail is disabled in the configuration of this server")

// call is the state of one request.
type call struct {
	pipeline.Call
	api   *API
	op    *operation
	query audit.Query
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pipeline.Serve(&call{
		Call: pipeline.Call{W: w, R: r, Surface: &a.surface, Audiences: a.opts.Audiences, Unlimited: true},
		api:  a,
	})
}

// Route implements pipeline.Steps. Only callers with the permission to read the audit trail
// are authorized, so every denial is about this permission.
func (c *call) Route() error {
	var path web.Path
	route, err := pipeline.FindRoute(&c.Call, c.api.router, &path)
	if err != nil {
		return err
	}
	c.op, c.Public = &route.Value, route.Value.public
	c.Authorization.Permission = access.ReadAudit
	return nil
}

// Authorize implements pipeline.Steps.
func (c *call) Authorize() error { return c.op.authorize(c) }

// Handle implements pipeline.Steps.
func (c *call) Handle() error { return c.op.handle(c) }

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func (c *call) document() error {
	web.WriteBody(c.W, http.StatusOK, "application/yaml", openapi.Document("audit"))
	return nil
}

// authorizeQuery parses the query and checks that the caller may read the records of its
// organization.
func (c *call) authorizeQuery() (err error) {
	if c.query, err = parseQuery(c.R.URL.RawQuery); err != nil {
		return err
	}
	if c.query.Organization == "" && !c.Principal.System {
		c.query.Organization = c.Principal.Organization
	}
	c.Authorization.Scope = access.Scope{Organization: c.query.Organization}
	_, err = c.Surface.Authorizer.Authorize(c.R.Context(), c.Principal, access.ReadAudit, c.Authorization.Scope)
	return err
}

func (c *call) records() error {
	if c.api.opts.Trail == nil {
		return errDisabled
	}
	records, err := c.api.opts.Trail.Tail(c.R.Context(), c.query)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.W, http.StatusOK, "application/json", newPage(records, c.query.Limit))
}

// page is the body of a response.
type page struct {
	Records []audit.Record `json:"records"`
	// Until is the query parameter for the next page of older records, if there may be
	// more.
	Until *time.Time `json:"until,omitempty"`
}

func newPage(records []audit.Record, limit int) page {
	p := page{Records: records}
	if records == nil {
		p.Records = []audit.Record{}
	}
	if n := len(records); n > 0 && n >= limit {
		p.Until = &records[n-1].Time
	}
	return p
}
