// Package auditapi is the HTTP surface that reads the audit trail: the latest records of
// an organization, newest first, with filters.
//
// It owns the paths, queries and response bodies. It does not write records: the other
// surfaces do, and audit stores them. identity authenticates callers, access authorizes
// them. A server returns only the records that it wrote itself. The package has no
// locks.
package auditapi

import (
	"context"
	"net/http"
	"time"

	"freshet/api/openapi"
	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
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
	opts   Options
	router *web.Router[web.HandlerFunc]
	serve  http.Handler
}

// New returns the surface. It panics if a required option is missing.
func New(opts Options) *API {
	opts.Complete("auditapi")
	a := &API{opts: opts}
	a.router = web.NewRouter([]web.Route[web.HandlerFunc]{
		{Method: http.MethodGet, Pattern: recordsPath, Value: a.records},
		{Method: http.MethodGet, Pattern: documentPath, Value: document},
	}, nil)
	a.serve = web.Handle(a.handle, writeError)
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

var (
	errNoRoute  = errs.New(errs.NotFound, "path does not exist")
	errMethod   = errs.New(errs.Invalid, "method is not allowed on this path; use GET")
	errDisabled = errs.New(errs.NotFound, "audit trail is disabled in the configuration of this server")
)

func (a *API) handle(w http.ResponseWriter, r *http.Request) error {
	if refusal := web.Refused(r); refusal != nil {
		return refusal
	}
	var path web.Path
	path.Parse(r.URL)
	route := a.router.Find(web.MethodOf(r), &path)
	if route == nil {
		if a.router.Allowed(&path) != "" {
			w.Header().Set("Allow", "GET, HEAD")
			return errMethod
		}
		return errNoRoute
	}
	web.RecordOf(r.Context()).SetRoute(surfaceName, route.Pattern)
	return route.Value(w, r)
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func document(w http.ResponseWriter, _ *http.Request) error {
	web.WriteBody(w, http.StatusOK, "application/yaml", openapi.Document("audit"))
	return nil
}

func (a *API) records(w http.ResponseWriter, r *http.Request) error {
	query, err := a.authorize(r)
	if err != nil {
		return err
	}
	if a.opts.Trail == nil {
		return errDisabled
	}
	records, err := a.opts.Trail.Tail(r.Context(), query)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, "application/json", newPage(records, query.Limit))
}

// authorize authenticates the caller, parses the query and authorizes it.
func (a *API) authorize(r *http.Request) (audit.Query, error) {
	token, _ := web.BearerToken(r)
	caller, err := a.opts.Authenticate(r, token, a.opts.Audiences...)
	if err != nil {
		return audit.Query{}, a.auditDenial(r, nil, "", err)
	}
	query, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return audit.Query{}, err
	}
	if query.Organization == "" && !caller.System {
		query.Organization = caller.Organization
	}
	_, err = a.opts.Authorizer.Authorize(r.Context(), caller, access.ReadAudit,
		access.Scope{Organization: query.Organization})
	if err != nil {
		return audit.Query{}, a.auditDenial(r, caller, query.Organization, err)
	}
	return query, nil
}

// auditDenial writes the audit record of a denied request. It returns err unchanged.
func (a *API) auditDenial(r *http.Request, caller *identity.Principal, organization string, err error) error {
	if status := statusOf(err); pipeline.Denied(status) {
		authorization := pipeline.Authorization{
			Permission: access.ReadAudit,
			Scope:      access.Scope{Organization: organization},
		}
		a.opts.Auditor.Record(pipeline.Record(r, surfaceName, caller, authorization, status))
	}
	return err
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
