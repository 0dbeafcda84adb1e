// Package auditapi lets those who may read the audit trail: the last records of
// an organization, newest first, with filters.
//
// It owns the wire and nothing else. Records are made by the other surfaces and
// kept by audit; who is calling comes from identity, what they may read from
// access. Each replica answers with the records that it wrote itself.
package auditapi

import (
	"context"
	"net/http"
	"time"

	"freshet/api/openapi"
	"freshet/internal/access"
	"freshet/internal/audit"
	"freshet/internal/errs"
	"freshet/internal/identity"
	"freshet/internal/web"
)

// Root is where the surface is mounted; everything beneath it is its own.
const Root = "/audit"

const recordsPath = Root + "/v1alpha1/records"

// Verifier tells whose a token is that is good for the resource API.
type Verifier interface {
	VerifyToken(ctx context.Context, token string) (*identity.Principal, error)
}

// Policy tells what a caller may do; a denial is an error of kind Denied.
type Policy interface {
	Authorize(ctx context.Context, who *identity.Principal, perm access.Permission, scope access.Scope) (access.Decision, error)
}

// Trail is where the records are; audit.Log is one.
type Trail interface {
	Tail(ctx context.Context, q audit.Query) ([]audit.Record, error)
	Record(r audit.Record)
}

// Options are what the API works with. Without a trail, which configuration can
// switch off, there is nothing to read.
type Options struct {
	Trail    Trail
	Verifier Verifier
	Policy   Policy
	CORS     web.CORS
}

// API serves the audit trail.
type API struct {
	opts  Options
	serve http.Handler
}

// New makes the API.
func New(opts Options) *API {
	a := &API{opts: opts}
	a.serve = opts.CORS.Handle(web.Handle(a.handle, writeError))
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

var (
	errNoPath   = errs.New(errs.NotFound, "there is nothing at this path")
	errMethod   = errs.New(errs.Invalid, "only GET is served here")
	errSwitched = errs.New(errs.NotFound, "this server keeps no audit trail")
)

func (a *API) handle(w http.ResponseWriter, r *http.Request) error {
	record := web.RecordOf(r.Context())
	switch r.URL.Path {
	case recordsPath:
		record.SetRoute("audit", recordsPath)
	case Root + "/v1alpha1/openapi.yaml":
		record.SetRoute("audit", r.URL.Path)
		web.WriteBody(w, http.StatusOK, "application/yaml", openapi.Document("audit"))
		return nil
	default:
		record.SetRoute("audit", "other")
		return errNoPath
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return errMethod
	}
	query, err := a.admit(r)
	if err != nil {
		return err
	}
	if a.opts.Trail == nil {
		return errSwitched
	}
	records, err := a.opts.Trail.Tail(r.Context(), query)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, "application/json", newPage(records, query.Limit))
}

// admit finds out who is asking, for what, and whether they may know.
func (a *API) admit(r *http.Request) (audit.Query, error) {
	token, ok := web.BearerToken(r)
	if !ok {
		return audit.Query{}, a.denied(r, nil, "", identity.ErrNoToken)
	}
	caller, err := a.opts.Verifier.VerifyToken(r.Context(), token)
	if err != nil {
		return audit.Query{}, a.denied(r, nil, "", err)
	}
	web.RecordOf(r.Context()).Principal = caller.Name
	query, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return audit.Query{}, err
	}
	if query.Organization == "" && !caller.System {
		query.Organization = caller.Organization
	}
	_, err = a.opts.Policy.Authorize(r.Context(), caller, access.ReadAudit, access.Scope{Organization: query.Organization})
	if err != nil {
		return audit.Query{}, a.denied(r, caller, query.Organization, err)
	}
	return query, nil
}

// denied records that somebody asked who may not.
func (a *API) denied(r *http.Request, caller *identity.Principal, organization string, err error) error {
	kind := errs.KindOf(err)
	if a.opts.Trail == nil || (kind != errs.Denied && kind != errs.Unauthenticated) {
		return err
	}
	record := audit.Record{
		Surface: "audit", Verb: "list", Resource: "auditrecords", Organization: organization,
		Permission: string(access.ReadAudit), Decision: audit.Denied, Status: statusOf(err),
		Source: r.RemoteAddr, UserAgent: r.UserAgent(), RequestID: web.RecordOf(r.Context()).RequestID,
	}
	if caller != nil {
		record.Principal, record.KeyID = caller.Name, caller.KeyID
		record.Scope = access.Scope{Organization: organization}.String()
	}
	a.opts.Trail.Record(record)
	return err
}

// page is one answer.
type page struct {
	Records []audit.Record `json:"records"`
	// Until continues with older records, when there may be more.
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
