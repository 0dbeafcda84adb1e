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
	"freshet/internal/surfaces/pipeline"
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

	nameErr error // a name in the path is not valid
}

// Route implements pipeline.Steps. Every change gets an audit record, successful or not.
func (c *call) Route() error {
	c.path.Parse(c.R.URL)
	r := c.api.router.Find(c.R.Method, &c.path)
	if r == nil {
		if err := c.path.Err(); err != nil {
			return err
		}
		return pipeline.NoRoute(&c.Call.Call, c.api.router, &c.path)
	}
	for _, name := range r.Params() {
		if r.Param(&c.path, name) == "" {
			return pipeline.ErrNoRoute // an empty path parameter matches no route
		}
	}
	c.route = r
	c.Changed = r.Method != http.MethodGet
	c.SetRoute(r.Pattern)
	return nil
}

// Resolve implements pipeline.Steps.
func (c *call) Resolve() error { return c.ResolveBy(c.api.opts.Resolver) }

// Forward implements pipeline.Steps. It sends a call on a topic to the member that owns the
// topic, because only the owner has its statistics and consumers, and a call on a consumer
// group to the group's coordinator. A call with invalid names is not forwarded; this member
// rejects it in Authorize.
func (c *call) Forward() (forwarded bool, err error) {
	if c.nameErr = c.bind(); c.nameErr != nil {
		return false, nil //nolint:nilerr // Authorize returns it, after the call was metered
	}
	switch {
	case c.param("topic") != "":
		return c.ForwardToOwner(), nil
	case c.param("group") != "":
		return c.Send(c.Cluster.Members.Coordinator(c.R, c.groupKey())), nil
	}
	return false, nil
}

// Authorize implements pipeline.Steps. The handlers of operations without permissions
// authorize themselves, for example each item of a list.
func (c *call) Authorize() error {
	if c.nameErr != nil {
		return c.nameErr
	}
	if needs := c.route.Value.permissions; len(needs) > 0 {
		return c.Require(needs...)
	}
	return nil
}

// Handle implements pipeline.Steps.
func (c *call) Handle() error { return c.route.Value.handle(c) }

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
