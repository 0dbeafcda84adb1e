// Package systemapi is the HTTP surface for the state of the server. Callers with
// cloud.metrics.describe in an organization can read that organization's metrics. System
// administrators can also read the effective configuration, list and change the members
// of the ensemble (members.go) and accept the loss of a shard's log (loss.go).
//
// The ops address also serves metrics: those of all organizations, without
// authentication, for the operator of the machine.
//
// pipeline runs the steps of a request. The limiter does not count the calls: operators need
// the surface while the server is busy.
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
	journalsPath      = Root + "/v1alpha1/journals/{organization}/{cluster}"
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
	// Configuration is the effective configuration.
	Configuration Configuration
	// Ensemble is the ensemble of the server.
	Ensemble Ensemble
}

// Configuration is the configuration of the server.
type Configuration interface {
	// YAML returns the current configuration as YAML, without secrets.
	YAML() ([]byte, error)
}

// API serves the state of the server.
type API struct {
	opts    Options
	surface pipeline.Surface
	metrics *metricsCache
	router  *web.Router[operation]
}

// operation is what a route does.
type operation struct {
	authorize func(*call) error // nil: the operation is public
	handle    func(*call) error
}

// routes are the routes of the surface.
var routes = []web.Route[operation]{
	{Method: http.MethodGet, Pattern: metricsPath, Value: operation{(*call).authorizeMetrics, (*call).writeMetrics}},
	{
		Method: http.MethodGet, Pattern: configurationPath,
		Value: operation{systemOnly(errConfigurationDenied), (*call).writeConfiguration},
	},
	{
		Method: http.MethodGet, Pattern: membersPath,
		Value: operation{systemOnly(errMembersDenied), (*call).writeMembers},
	},
	{
		Method: http.MethodPost, Pattern: replacePath,
		Value: operation{systemOnly(errMembersDenied), (*call).replaceMember},
	},
	{Method: http.MethodPost, Pattern: stepDownPath, Value: operation{systemOnly(errMembersDenied), (*call).stepDown}},
	{Method: http.MethodGet, Pattern: lossPath, Value: operation{systemOnly(errShardsDenied), (*call).writeLoss}},
	{Method: http.MethodPost, Pattern: lossPath, Value: operation{systemOnly(errShardsDenied), (*call).acceptLoss}},
	{
		Method: http.MethodGet, Pattern: journalsPath,
		Value: operation{systemOnly(errJournalsDenied), (*call).writeJournals},
	},
	{
		Method: http.MethodPost, Pattern: journalsPath,
		Value: operation{systemOnly(errJournalsDenied), (*call).acceptJournal},
	},
	{Method: http.MethodGet, Pattern: documentPath, Value: operation{nil, (*call).document}},
}

// New returns the surface. It panics if a required option is missing.
func New(opts Options) *API {
	opts.Complete("systemapi")
	return &API{
		opts: opts,
		surface: pipeline.Surface{
			Name: surfaceName, Options: opts.Options, Errors: errorTable, BearerOnly: true,
		},
		metrics: &metricsCache{gatherer: opts.Metrics},
		router:  web.NewRouter(routes, nil),
	}
}

// errorTable is the surface's one table from errors to responses.
const errorTable = pipeline.StatusErrors(surfaceName)

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error) { errorTable.Refuse(w, r, err) }

var (
	errQuery = errs.New(errs.Invalid,
		"query is malformed; the only parameter is organization, at most once")
	errConfigurationDenied = errs.New(errs.Denied, "configuration is visible to system administrators only")
)

// call is the state of one request.
type call struct {
	pipeline.Call
	api   *API
	path  web.Path
	route *web.Route[operation]

	organization string // whose metrics are read; "" for all
	member       string // the member that the call changes; "" for none
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pipeline.Serve(&call{
		Call: pipeline.Call{W: w, R: r, Surface: &a.surface, Audiences: a.opts.Audiences, Unlimited: true},
		api:  a,
	})
}

// Route implements pipeline.Steps.
func (c *call) Route() (err error) {
	c.route, err = pipeline.FindRoute(&c.Call, c.api.router, &c.path)
	c.Public = err == nil && c.route.Value.authorize == nil
	return err
}

// Authorize implements pipeline.Steps.
func (c *call) Authorize() error { return c.route.Value.authorize(c) }

// Handle implements pipeline.Steps.
func (c *call) Handle() error { return c.route.Value.handle(c) }

// Audit implements pipeline.Steps. The record of a changed member names the member.
func (c *call) Audit(err error, status int) {
	if c.member == "" || !c.Changed {
		c.Call.Audit(err, status)
		return
	}
	rec := pipeline.Record(c.R, surfaceName, c.Principal, c.Authorization, status)
	rec.Scope = "member/" + c.member
	c.Surface.Auditor.Record(rec)
}

// systemOnly returns the check that the caller is a system administrator. denial is the error
// for other callers.
func systemOnly(denial error) func(*call) error {
	return func(c *call) error {
		if !c.Principal.System {
			return denial
		}
		return nil
	}
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func (c *call) document() error {
	web.WriteBody(c.W, http.StatusOK, "application/yaml", openapi.Document("system"))
	return nil
}

// authorizeMetrics checks that the caller may read the metrics of the organization that the
// query names. System administrators may read those of all organizations.
func (c *call) authorizeMetrics() error {
	query, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil || len(query["organization"]) > 1 || len(query) > len(query["organization"]) {
		return errQuery
	}
	c.organization = query.Get("organization")
	if c.organization == "" && !c.Principal.System {
		c.organization = c.Principal.Organization
	}
	c.Authorization = pipeline.Authorization{
		Permission: access.ReadMetrics, Scope: access.Scope{Organization: c.organization},
	}
	_, err = c.Surface.Authorizer.Authorize(c.R.Context(), c.Principal, access.ReadMetrics, c.Authorization.Scope)
	return err
}

// writeMetrics responds with the series of one organization, or with all series.
func (c *call) writeMetrics() error {
	var text bytes.Buffer
	if err := c.api.metrics.write(&text, c.organization); err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	web.WriteBody(c.W, http.StatusOK, contentType, text.Bytes())
	return nil
}

func (c *call) writeConfiguration() error {
	text, err := c.api.opts.Configuration.YAML()
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	web.WriteBody(c.W, http.StatusOK, "application/yaml", text)
	return nil
}
