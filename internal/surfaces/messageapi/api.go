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

// Options configures the surface; Resolver, Authenticator and Authorizer are required.
// The limiter does not count calls that may wait: the broker limits them.
type Options struct {
	pipeline.Options
	Resolver brokerhttp.Resolver
	// WriteTimeout is the time for a client to read a large response or an event; 0 means
	// one minute.
	WriteTimeout time.Duration
}

// API serves messages.
type API struct {
	opts   Options
	router *web.Router[operation]
	serve  http.Handler

	tickets tickets
}

// New returns the surface. It panics if a required option is missing.
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

// calls reuses call values to save allocations; see BenchmarkHandler.
var calls = sync.Pool{New: func() any { return new(call) }}

// dispatch calls the handler of a request and maps its error to a response. It writes an
// audit record for denied requests only: there are too many messages to record each one.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call) // the pool has no other type
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

// end releases the call's reserved memory and returns the call to the pool.
func (c *call) end() {
	c.Release()
	*c = call{}
	calls.Put(c)
}
