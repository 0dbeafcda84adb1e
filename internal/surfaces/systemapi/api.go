// Package systemapi is the HTTP surface for the state of the server. Callers with
// cloud.metrics.describe in an organization can read that organization's metrics. System
// administrators can also read the effective configuration, list and change the members
// of the ensemble (members.go) and accept the loss of a shard's log (loss.go).
//
// The ops address also serves metrics: those of all organizations, without
// authentication, for the operator of the machine.
//
// The package has one lock: metricsCache.mu protects the gathered metrics. It is held while
// they are gathered, so that concurrent requests share one gathering.
package systemapi

import (
	"bytes"
	"net/http"
	"net/url"

	"freshet/api/openapi"
	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/pipeline"
)

// Root is the path prefix of the surface. It also responds (404) to unknown paths below
// it.
const Root = "/system"

const (
	metricsPath       = Root + "/v1alpha1/metrics"
	configurationPath = Root + "/v1alpha1/configuration"
	membersPath       = Root + "/v1alpha1/members"
	replacePath       = membersPath + "/{name}/replace"
	stepDownPath      = membersPath + "/{name}/step-down"
	lossPath          = Root + "/v1alpha1/shards/{organization}/{cluster}/{number}/loss"
	documentPath      = Root + "/v1alpha1/openapi.yaml"

	surfaceName = "system" // in records and metrics
)

// Options configures the surface; all are required.
type Options struct {
	pipeline.Options
	// Audiences are the names under which tokens are accepted: those of the
	// resource API.
	Audiences []string
	// Metrics gathers the series.
	Metrics Gatherer
	// Configuration returns the effective configuration as YAML, without secrets.
	Configuration func() ([]byte, error)
	// Ensemble is the ensemble of the server.
	Ensemble Ensemble
}

// API serves the state of the server.
type API struct {
	opts    Options
	metrics *metricsCache
	router  *web.Router[web.HandlerFunc]
	serve   http.Handler
}

// New returns the surface. It panics if a required option is missing.
func New(opts Options) *API {
	opts.Complete("systemapi")
	a := &API{opts: opts, metrics: &metricsCache{gatherer: opts.Metrics}}
	a.router = web.NewRouter([]web.Route[web.HandlerFunc]{
		{Method: http.MethodGet, Pattern: metricsPath, Value: a.writeMetrics},
		{Method: http.MethodGet, Pattern: configurationPath, Value: a.writeConfiguration},
		{Method: http.MethodGet, Pattern: membersPath, Value: a.writeMembers},
		{Method: http.MethodPost, Pattern: replacePath, Value: a.replaceMember},
		{Method: http.MethodPost, Pattern: stepDownPath, Value: a.stepDown},
		{Method: http.MethodGet, Pattern: lossPath, Value: a.writeLoss},
		{Method: http.MethodPost, Pattern: lossPath, Value: a.acceptLoss},
		{Method: http.MethodGet, Pattern: documentPath, Value: document},
	}, nil)
	a.serve = web.Handle(a.handle, writeError)
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

var (
	errNoRoute = errs.New(errs.NotFound, "path does not exist")
	errMethod  = errs.New(errs.Invalid,
		"method is not allowed on this path; the Allow header lists allowed methods")
	errQuery = errs.New(errs.Invalid,
		"query is malformed; the only parameter is organization, at most once")
	errConfigurationDenied = errs.New(errs.Denied, "configuration is visible to system administrators only")
)

func (a *API) handle(w http.ResponseWriter, r *http.Request) error {
	if refusal := web.Refused(r); refusal != nil {
		return refusal
	}
	var path web.Path
	path.Parse(r.URL)
	route := a.router.Find(web.MethodOf(r), &path)
	if route == nil {
		if allowed := a.router.Allowed(&path); allowed != "" {
			if allowed == http.MethodGet {
				allowed = "GET, HEAD"
			}
			w.Header().Set("Allow", allowed)
			return errMethod
		}
		return errNoRoute
	}
	web.RecordOf(r.Context()).SetRoute(surfaceName, route.Pattern)
	return route.Value(w, r)
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func document(w http.ResponseWriter, _ *http.Request) error {
	web.WriteBody(w, http.StatusOK, "application/yaml", openapi.Document("system"))
	return nil
}

// writeMetrics responds with the series of one organization, or with all series if a
// system administrator names no organization.
func (a *API) writeMetrics(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.caller(r)
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query["organization"]) > 1 || len(query) > len(query["organization"]) {
		return errQuery
	}
	organization := query.Get("organization")
	if organization == "" && !caller.System {
		organization = caller.Organization
	}
	scope := access.Scope{Organization: organization}
	if _, err := a.opts.Authorizer.Authorize(r.Context(), caller, access.ReadMetrics, scope); err != nil {
		return a.auditDenial(r, caller, pipeline.Authorization{Permission: access.ReadMetrics, Scope: scope}, err)
	}
	var text bytes.Buffer
	if err := a.metrics.write(&text, organization); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	web.WriteBody(w, http.StatusOK, contentType, text.Bytes())
	return nil
}

func (a *API) writeConfiguration(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.caller(r)
	if err != nil {
		return err
	}
	if !caller.System {
		return a.auditDenial(r, caller, pipeline.Authorization{}, errConfigurationDenied)
	}
	text, err := a.opts.Configuration()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	web.WriteBody(w, http.StatusOK, "application/yaml", text)
	return nil
}

func (a *API) caller(r *http.Request) (*identity.Principal, error) {
	token, _ := web.BearerToken(r)
	caller, err := a.opts.Authenticate(r, token, a.opts.Audiences...)
	if err != nil {
		return nil, a.auditDenial(r, nil, pipeline.Authorization{}, err)
	}
	return caller, nil
}

// auditDenial writes the audit record of a denied request. It returns err unchanged.
func (a *API) auditDenial(r *http.Request, caller *identity.Principal, asked pipeline.Authorization, err error) error {
	if status := statusOf(err); pipeline.Denied(status) {
		a.opts.Auditor.Record(pipeline.Record(r, surfaceName, caller, asked, status))
	}
	return err
}
