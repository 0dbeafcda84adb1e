// Package systemapi tells what a server is doing to those who may know: an
// organization's own metrics to whoever has cloud.metrics.describe in it, and the
// effective configuration, the members of a group (members.go) and shards whose log is
// lost (loss.go) to system
// administrators.
//
// The ops address has the metrics of everything, asks for nothing, and is for
// whoever runs the machine; this is what of it can be told to others.
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

// Root is where the surface is mounted; everything beneath it is its own.
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
	// Metrics is where the series come from.
	Metrics Gatherer
	// Configuration is the effective one as YAML, without secrets.
	Configuration func() ([]byte, error)
	// Group is the one that the server is a member of.
	Group Group
}

// API serves them.
type API struct {
	opts    Options
	metrics *cache
	router  *web.Router[web.HandlerFunc]
	serve   http.Handler
}

// New makes the surface.
func New(opts Options) *API {
	opts.Complete("systemapi")
	a := &API{opts: opts, metrics: &cache{from: opts.Metrics}}
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
	errNoPath = errs.New(errs.NotFound, "there is nothing at this path")
	errMethod = errs.New(errs.Invalid, "the method is not allowed on this path; the header Allow says which are")
	errQuery  = errs.New(errs.Invalid, "the query is malformed; organization is its only parameter, at most once")
	errSystem = errs.New(errs.Denied, "the configuration is for system administrators only")
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
		return errNoPath
	}
	web.RecordOf(r.Context()).SetRoute(surfaceName, route.Pattern)
	return route.Value(w, r)
}

// document is open to everybody, as it holds no secret.
func document(w http.ResponseWriter, _ *http.Request) error {
	web.WriteBody(w, http.StatusOK, "application/yaml", openapi.Document("system"))
	return nil
}

// writeMetrics answers with the series of one organization, or of everything when a
// system administrator names none.
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
		return a.denied(r, caller, pipeline.Asked{Permission: access.ReadMetrics, Scope: scope}, err)
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
		return a.denied(r, caller, pipeline.Asked{}, errSystem)
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
		return nil, a.denied(r, nil, pipeline.Asked{}, err)
	}
	return caller, nil
}

// denied records that somebody asked who may not.
func (a *API) denied(r *http.Request, caller *identity.Principal, asked pipeline.Asked, err error) error {
	if status := statusOf(err); pipeline.Denied(status) {
		a.opts.Auditor.Record(pipeline.Record(r, surfaceName, caller, asked, status))
	}
	return err
}
