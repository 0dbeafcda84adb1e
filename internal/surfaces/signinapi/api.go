package signinapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/passkey"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/throttle"
)

// surfaceName is the name of the surface in records and metrics.
const surfaceName = "signin"

// The paths.
const (
	pathAuthorize = "/oauth/authorize"
	pathSignIn    = "/oauth/signin"
	pathProvider  = "/oauth/signin/openid"
	pathCallback  = "/oauth/callback"
	pathChoose    = "/oauth/choose"
	pathInvite    = "/oauth/invite"
	pathLink      = "/oauth/link"
	pathDevice    = "/oauth/device"
	pathAccount   = "/oauth/account"
	pathSignOut   = "/oauth/signout"
	pathStyle     = "/oauth/signin.css"
	pathScript    = "/oauth/passkeys.js"

	pathSignInPasskey = "/oauth/signin/passkey"
	pathInvitePasskey = "/oauth/invite/passkey"
	pathPasskeys      = "/oauth/account/passkeys"
	pathPasskeyRemove = "/oauth/account/passkeys/remove"
	pathConsole       = "/console/"
)

// CallbackPath is the path to which an OpenID provider redirects browsers.
const CallbackPath = pathCallback

// Links returns the URLs of one-time links to the server at Base.
type Links struct{ Base string }

// InviteURL returns the URL of an invitation.
func (l Links) InviteURL(token string) string { return l.Base + pathInvite + "?token=" + token }

// LinkURL returns the URL of a one-time link for an account.
func (l Links) LinkURL(token string) string { return l.Base + pathLink + "?token=" + token }

// Provider is an external OpenID provider; openid.Provider implements it.
type Provider interface {
	Begin(ctx context.Context) (url string, login openid.Login, err error)
	Finish(ctx context.Context, login openid.Login, state, code string) (email string, err error)
}

// Options configures the surface; the parts of the sign-in service and Sealer are required.
type Options struct {
	// The parts of the sign-in service that the pages use.
	Subjects  *signin.Subjects
	People    *signin.People
	Links     *signin.Links
	Passwords *signin.Passwords
	Passkeys  *signin.Passkeys
	Sessions  *signin.Sessions
	Codes     *signin.Codes
	Devices   *signin.Devices

	Sealer       *identity.Sealer
	Issuer       string   // issuer of tokens
	Origins      []string // origins of this server, where the console may be
	Organization string   // default of the organization field in the form
	Provider     Provider // nil: no OpenID provider
	ProviderName string
	Limits       Limits           // zero values select the defaults
	Auditor      pipeline.Auditor // nil: no audit records
	Counter      Counter          // nil: sign-ins are not counted
}

// Counter counts sign-ins; identitymetrics.SignIns implements it.
type Counter interface {
	// Count counts a sign-in with a method (signin.MethodPassword and others): success, failure or
	// throttled.
	Count(method, outcome string)
}

// noCounter implements Counter without counting.
type noCounter struct{}

// Count implements Counter.
func (noCounter) Count(string, string) {}

// Limits are the rate limits of sign-in attempts.
type Limits struct {
	Address     throttle.Rate // attempts per address
	Account     throttle.Rate // passwords per account and address
	Guesses     throttle.Rate // passwords per account, from addresses without an earlier sign-in to it
	DeviceCodes throttle.Rate // device codes per session
}

const maxTrackedKeys = 20_000

func (l *Limits) complete() {
	l.Address.Complete(throttle.Rate{PerSecond: 1, Burst: 60})
	l.Account.Complete(throttle.Rate{PerSecond: 0.1, Burst: 20})
	l.Guesses.Complete(throttle.Rate{PerSecond: 0.2, Burst: 200})
	l.DeviceCodes.Complete(throttle.Rate{PerSecond: 0.1, Burst: 10})
}

// API serves the pages.
type API struct {
	opts        Options
	surface     pipeline.Surface
	router      *web.Router[web.HandlerFunc]
	sameSite    *http.CrossOriginProtection
	guard       *throttle.Guard // protects passwords and the secrets in links
	deviceCodes *throttle.Limiter
	parties     map[string]*passkey.RelyingParty // by origin
	policy      string                           // Content-Security-Policy
}

// New returns the surface.
func New(opts Options) (*API, error) {
	if opts.Subjects == nil || opts.People == nil || opts.Links == nil || opts.Passwords == nil ||
		opts.Passkeys == nil || opts.Sessions == nil || opts.Codes == nil || opts.Devices == nil || opts.Sealer == nil {
		return nil, errors.New("signinapi: the parts of the sign-in service and Sealer are required")
	}
	if opts.Counter == nil {
		opts.Counter = noCounter{}
	}
	opts.Auditor = pipeline.AuditorOrDiscard(opts.Auditor)
	opts.Limits.complete()
	a := &API{
		opts: opts, sameSite: http.NewCrossOriginProtection(),
		guard: throttle.NewGuard(throttle.GuardRates{
			Address: opts.Limits.Address, AccountByAddress: opts.Limits.Account, Account: opts.Limits.Guesses,
		}, maxTrackedKeys),
		deviceCodes: throttle.New(opts.Limits.DeviceCodes, maxTrackedKeys),
		// A form may redirect to the console at another origin of this server.
		policy: "default-src 'none'; style-src 'self'; form-action 'self' " +
			strings.Join(withoutIPv6(opts.Origins), " ") + "; base-uri 'none'; frame-ancestors 'none'",
	}
	var err error
	if a.parties, err = parties(opts.Origins); err != nil {
		return nil, err
	}
	a.router = web.NewRouter(a.routes(), nil)
	a.surface = pipeline.Surface{
		Name: surfaceName, Options: pipeline.Options{Auditor: opts.Auditor}, Errors: errorPages{a},
	}
	return a, nil
}

// withoutIPv6 removes origins that a Content-Security-Policy cannot name: IPv6 addresses.
func withoutIPv6(origins []string) []string {
	return slices.DeleteFunc(slices.Clone(origins), func(o string) bool { return strings.Contains(o, "[") })
}

// Patterns returns the paths of the surface, for the router that it is mounted on.
func Patterns() []string {
	return []string{
		pathAuthorize, pathSignIn, pathProvider, pathCallback, pathChoose, pathInvite, pathLink, pathDevice,
		pathAccount, pathSignOut, pathStyle,
		pathScript, pathSignInPasskey, pathInvitePasskey, pathPasskeys, pathPasskeyRemove,
	}
}

func (a *API) routes() []web.Route[web.HandlerFunc] {
	get, post := http.MethodGet, http.MethodPost
	return []web.Route[web.HandlerFunc]{
		{Method: get, Pattern: pathAuthorize, Value: a.authorize},
		{Method: get, Pattern: pathSignIn, Value: a.showSignIn},
		{Method: post, Pattern: pathSignIn, Value: a.form(a.signIn)},
		{Method: get, Pattern: pathProvider, Value: a.beginProvider},
		{Method: get, Pattern: pathCallback, Value: a.callback},
		{Method: post, Pattern: pathChoose, Value: a.form(a.choose)},
		{Method: get, Pattern: pathInvite, Value: a.showInvite},
		{Method: post, Pattern: pathInvite, Value: a.form(a.acceptInvite)},
		{Method: get, Pattern: pathLink, Value: a.showLink},
		{Method: post, Pattern: pathLink, Value: a.form(a.followLink)},
		{Method: get, Pattern: pathDevice, Value: a.showDevice},
		{Method: post, Pattern: pathDevice, Value: a.form(a.decideDevice)},
		{Method: get, Pattern: pathAccount, Value: a.showAccount},
		{Method: get, Pattern: pathSignOut, Value: a.showSignOut},
		{Method: post, Pattern: pathSignOut, Value: a.form(a.signOut)},
		{Method: get, Pattern: pathStyle, Value: a.serveFile("text/css; charset=utf-8", style)},
		{Method: get, Pattern: pathScript, Value: a.serveFile("text/javascript; charset=utf-8", script)},
		{Method: post, Pattern: pathSignInPasskey, Value: a.form(a.signInPasskey)},
		{Method: post, Pattern: pathInvitePasskey, Value: a.form(a.acceptPasskey)},
		{Method: post, Pattern: pathPasskeys, Value: a.form(a.addPasskey)},
		{Method: post, Pattern: pathPasskeyRemove, Value: a.form(a.removePasskey)},
	}
}

var (
	errMethod = errs.New(errs.Invalid, "method is not allowed on this page")
	errPath   = errs.New(errs.NotFound, "page does not exist")
)

// call is the state of one request.
type call struct {
	pipeline.Call
	api   *API
	serve web.HandlerFunc
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pipeline.Serve(&call{Call: pipeline.Call{W: w, R: r, Surface: &a.surface, Public: true}, api: a})
}

// Route implements pipeline.Steps. All pages are public: users have cookies or nothing.
func (c *call) Route() error {
	var path web.Path
	path.Parse(c.R.URL)
	route := c.api.router.Find(web.MethodOf(c.R), &path)
	if route == nil {
		if c.Allow = c.api.router.Allowed(&path); c.Allow != "" {
			return errMethod
		}
		return errPath
	}
	c.SetRoute(route.Pattern)
	if strings.HasSuffix(c.R.URL.Path, "/") {
		return errPath
	}
	c.serve = route.Value
	return nil
}

// Authorize implements pipeline.Steps. The pages are public, so it denies.
func (c *call) Authorize() error { return access.ErrDenied }

// Handle implements pipeline.Steps.
func (c *call) Handle() error { return c.serve(c.W, c.R) }

// Audit implements pipeline.Steps. The handlers write the records: a record names the user
// and how it signs in.
func (c *call) Audit(error, int) {}

// record writes an audit record. of is the zero Subject if the user is unknown.
func (a *API) record(r *http.Request, subject signin.Subject, verb, method string, status int) {
	rec := pipeline.Record(r, surfaceName, nil, pipeline.Authorization{}, status)
	rec.Verb, rec.Resource = verb, "sessions"
	if subject.UID != "" {
		rec.Organization, rec.Principal = subject.Organization, a.opts.Subjects.Principal(subject)
	}
	if method != "" {
		rec.Scope = "method/" + method
	}
	a.opts.Auditor.Record(rec)
}

// Refuse responds with an error to a request that the surface cannot serve yet.
func Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
