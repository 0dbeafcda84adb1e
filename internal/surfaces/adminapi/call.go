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
	permissions []access.Permission // any one of them is enough; if empty, the handler authorizes the call
	handle      func(*call) error
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

// call is the state of one request.
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
			return brokerhttp.ErrNoRoute // an empty path parameter matches no route
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
	caller := c.Caller()
	if err := c.Options.Limiter.Enter(caller); err != nil {
		return err
	}
	defer c.Options.Limiter.Leave(caller)
	if err := c.bind(); err != nil {
		return err
	}
	if needs := r.Value.permissions; len(needs) > 0 {
		if err := c.Authorize(needs...); err != nil {
			return err
		}
	}
	return r.Value.handle(c)
}

// forward sends a call on a topic to the member that owns the topic, because only the
// owner has its statistics and consumers, and a call on a consumer group to the group's
// coordinator. It reports whether another member responded. A call with invalid names is
// not forwarded; this member rejects it.
func (c *call) forward() bool {
	sent := false
	switch {
	case c.param("topic") != "":
		sent = c.bind() == nil && c.Forward()
	case c.param("group") != "":
		sent = c.Send(c.Cluster.Members.Coordinator(c.R, c.groupKey()))
	}
	if sent {
		c.route = nil // the other member writes the audit record
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

// param returns the value of a path parameter.
func (c *call) param(name string) string { return c.route.Param(&c.path, name) }

// bind parses the names in the path into the call.
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

var errPathNumber = errs.New(errs.Invalid, "path is not valid")

// pathNumber parses a path parameter as an integer of at least 0.
func (c *call) pathNumber(name string) (int64, error) {
	n, err := strconv.ParseInt(c.param(name), 10, 64)
	if err != nil || n < 0 {
		return 0, errs.Newf(errs.Invalid, "%w: %s must be an integer of at least 0", errPathNumber, name)
	}
	return n, nil
}

// done responds with 204 if err is nil.
func (c *call) done(err error) error {
	if err != nil {
		return c.RecordDenial(err)
	}
	c.NoContent()
	return nil
}

// queryFlag parses a boolean query parameter: "true" in upper or lower case is true, every
// other value is false.
func (c *call) queryFlag(name string) bool {
	return strings.EqualFold(c.R.URL.Query().Get(name), "true")
}
