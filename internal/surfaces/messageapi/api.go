package messageapi

import (
	"net/http"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/pipeline"
)

// Options configures the surface; Resolver, Authenticator and Authorizer are
// required. Calls that may wait are not counted by the limiter: the broker
// bounds how many do.
type Options struct {
	pipeline.Options
	Resolver brokerhttp.Resolver
	// WriteTimeout is for a client to take what it is sent; 0 means a minute.
	WriteTimeout time.Duration
}

// API serves messages.
type API struct {
	opts   Options
	router *web.Router[operation]
	serve  http.Handler

	tickets tickets
}

// New makes the surface.
func New(opts Options) *API {
	opts.Complete("messageapi")
	if opts.Resolver == nil {
		panic("messageapi: a Resolver is required")
	}
	if opts.WriteTimeout == 0 {
		opts.WriteTimeout = time.Minute
	}
	a := &API{opts: opts, router: web.NewRouter(routes, nil)}
	a.serve = http.HandlerFunc(a.dispatch)
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serve.ServeHTTP(w, r) }

// calls keeps those that ended for those that begin: BenchmarkHandler.
var calls = sync.Pool{New: func() any { return new(call) }}

// dispatch sends a request to its handler, and what went wrong to the table of
// errors. Only what was denied is recorded: there are too many messages, and
// they are the users' own.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call) // the pool holds nothing else
	defer c.end()
	*c = call{Call: brokerhttp.Call{W: w, R: r, Options: &a.opts.Options}, api: a}
	var err error
	if refusal := web.Refused(r); refusal != nil {
		err = refusal
	} else if err = c.serve(); err == nil {
		return
	}
	status := brokerhttp.StatusOf(err, brokerhttp.MessageCalls)
	if pipeline.Denied(status) && errs.KindOf(err) != errs.Exhausted {
		c.Audit(status)
	}
	c.Fail(err, status)
}

// end gives back what the call held, and the call.
func (c *call) end() {
	c.Release()
	*c = call{}
	calls.Put(c)
}
