package messageapi

import (
	"net/http"
	"sync"
	"time"

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
	opts    Options
	surface pipeline.Surface
	router  *web.Router[operation]
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
	return &API{
		opts: opts,
		surface: pipeline.Surface{
			Name: brokerhttp.Surface, Options: opts.Options, Errors: brokerhttp.MessageCalls,
		},
		router: web.NewRouter(routes, nil),
	}
}

// calls reuses call values to save allocations; see BenchmarkHandler.
var calls = sync.Pool{New: func() any { return new(call) }}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call) // the pool has no other type
	defer c.end()
	c.api, c.W, c.R, c.Surface = a, w, r, &a.surface
	pipeline.Serve(c)
}

// end returns the call to the pool.
func (c *call) end() {
	*c = call{}
	calls.Put(c)
}
