package adminapi

import (
	"net/http"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
)

// operation is an administrative call.
type operation struct {
	needs  []access.Permission // any one of them; none means the handler asks itself
	handle func(*call) error
}

type route = web.Route[operation]

func get(pattern string, needs []access.Permission, handle func(*call) error) route {
	return route{Method: http.MethodGet, Pattern: pattern, Value: operation{needs, handle}}
}

func put(pattern string, needs []access.Permission, handle func(*call) error) route {
	return route{Method: http.MethodPut, Pattern: pattern, Value: operation{needs, handle}}
}

func post(pattern string, needs []access.Permission, handle func(*call) error) route {
	return route{Method: http.MethodPost, Pattern: pattern, Value: operation{needs, handle}}
}

func remove(pattern string, needs []access.Permission, handle func(*call) error) route {
	return route{Method: http.MethodDelete, Pattern: pattern, Value: operation{needs, handle}}
}

// call is one request on its way through the surface.
type call struct {
	brokerhttp.Call
	api   *API
	path  web.Path
	route *route
}

func (c *call) serve() error {
	c.path.Parse(c.R.URL)
	r := c.api.router.Find(c.R.Method, &c.path)
	if r == nil {
		return c.notFound()
	}
	for _, name := range r.Params() {
		if r.Param(&c.path, name) == "" {
			return brokerhttp.ErrNoRoute // nothing has no name
		}
	}
	c.route = r
	web.RecordOf(c.R.Context()).SetRoute(brokerhttp.Surface, r.Pattern)
	if err := c.Resolve(c.api.opts.Resolver); err != nil {
		return err
	}
	if err := c.Authenticate(); err != nil {
		return err
	}
	if c.forward() {
		return nil
	}
	if err := c.Meter(); err != nil {
		return err
	}
	who := c.Who()
	if err := c.Options.Limiter.Enter(who); err != nil {
		return err
	}
	defer c.Options.Limiter.Leave(who)
	if err := c.bind(); err != nil {
		return err
	}
	if needs := r.Value.needs; len(needs) > 0 {
		if err := c.Authorize(needs...); err != nil {
			return err
		}
	}
	return r.Value.handle(c)
}

// forward sends a call on a topic to the member that owns it, whose statistics and
// consumers it is about. Names that are not valid are refused here.
func (c *call) forward() bool {
	sent := false
	switch {
	case c.Cluster.Owner == nil:
	case c.param("topic") != "":
		sent = c.bind() == nil && c.Forward()
	case c.param("group") != "" && c.Cluster.Coordinator != nil:
		sent = c.Send(c.Cluster.Coordinator(c.R, c.groupKey()))
	}
	if sent {
		c.route = nil // whoever answered has recorded it
	}
	return sent
}

func (c *call) notFound() error {
	if err := c.path.Err(); err != nil {
		return err
	}
	if c.Allow = c.api.router.Allowed(&c.path); c.Allow != "" {
		return brokerhttp.ErrMethod
	}
	return brokerhttp.ErrNoRoute
}

// param returns what the path says for a parameter of the route.
func (c *call) param(name string) string { return c.route.Param(&c.path, name) }

// bind takes what the path names out of it.
func (c *call) bind() error {
	if s := c.param("subscription"); s != "" {
		if err := c.SetSubscription(s); err != nil {
			return err
		}
	}
	c.Tenant = c.param("tenant")
	switch namespace, topic := c.param("namespace"), c.param("topic"); {
	case topic != "":
		if err := brokerhttp.CheckDomain(names.Domain(c.param("domain"))); err != nil {
			return err
		}
		return c.SetTopic(c.Tenant, namespace, topic)
	case namespace != "":
		return c.SetNamespace(c.Tenant, namespace)
	}
	return nil
}

var errPathNumber = errs.New(errs.Invalid, "the path is not valid")

// number reads a parameter of the path as a number.
func (c *call) number(name string) (int64, error) {
	n, err := strconv.ParseInt(c.param(name), 10, 64)
	if err != nil || n < 0 {
		return 0, errs.Newf(errs.Invalid, "%w: %s must be a number of at least 0", errPathNumber, name)
	}
	return n, nil
}

// done answers 204 to a call that succeeded.
func (c *call) done(err error) error {
	if err != nil {
		return c.Refused(err)
	}
	c.NoContent()
	return nil
}

// flag reads a boolean of the query: true in any case, anything else is false.
func (c *call) flag(name string) bool {
	return strings.EqualFold(c.R.URL.Query().Get(name), "true")
}
