package pipeline

import (
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

// Errors for an unknown path and for a method that a path does not have.
var (
	ErrNoRoute = errs.New(errs.NotFound, "path does not exist")
	ErrMethod  = errs.New(errs.Invalid, "method is not allowed on this path; the Allow header lists allowed methods")
)

// FindRoute returns the route of a call, for surfaces where HEAD is allowed on every path
// with GET. path is set to the request's path.
func FindRoute[T any](c *Call, router *web.Router[T], path *web.Path) (*web.Route[T], error) {
	path.Parse(c.R.URL)
	route := router.Find(web.MethodOf(c.R), path)
	if route == nil {
		err := NoRoute(c, router, path)
		if c.Allow == http.MethodGet {
			c.Allow = "GET, HEAD"
		}
		return nil, err
	}
	c.SetRoute(route.Pattern)
	return route, nil
}

// NoRoute returns the error for a call without a route: ErrMethod if the path exists, and
// then it sets Call.Allow, otherwise ErrNoRoute.
func NoRoute[T any](c *Call, router *web.Router[T], path *web.Path) error {
	if c.Allow = router.Allowed(path); c.Allow != "" {
		return ErrMethod
	}
	return ErrNoRoute
}

// SetRoute adds the surface and the pattern of the call's route to the log record.
func (c *Call) SetRoute(pattern string) {
	web.RecordOf(c.R.Context()).SetRoute(c.Surface.Name, pattern)
}
