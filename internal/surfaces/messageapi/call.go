package messageapi

import (
	"net/http"

	"freshet/api/openapi"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/brokerhttp"
)

// call is the state of one request.
type call struct {
	brokerhttp.Call
	api   *API
	path  web.Path
	route *web.Route[operation]
}

// serve routes a call. The path may have the topic's domain before the tenant. That is
// unambiguous, because no tenant can have the name of a domain.
func (c *call) serve() error {
	c.path.Parse(c.R.URL)
	domain, hasDomain := names.ParseDomain(c.path.Segment(domainSegment))
	if hasDomain {
		c.path.Remove(domainSegment)
	}
	route := c.api.router.Find(c.R.Method, &c.path)
	if route == nil && c.R.Method == http.MethodHead {
		// HEAD is supported for the OpenAPI document, not for messages.
		if route = c.api.router.Find(http.MethodGet, &c.path); route != nil && route.Value.permission != "" {
			route = nil
		}
	}
	if route == nil {
		return c.notFound()
	}
	web.RecordOf(c.R.Context()).SetRoute(brokerhttp.Surface, route.Pattern)
	c.route = route
	op := &route.Value
	if op.permission != "" {
		if done, err := c.admit(domain); done || err != nil {
			return err
		}
	}
	if !op.waits {
		principal := c.Caller()
		if err := c.Options.Limiter.Enter(principal); err != nil {
			return err
		}
		defer c.Options.Limiter.Leave(principal)
	}
	return op.handle(c)
}

// admit resolves the cluster, authenticates the caller, parses the topic and authorizes
// the call. It reports whether another member has responded to the call.
func (c *call) admit(domain names.Domain) (done bool, err error) {
	if err := c.Resolve(c.api.opts.Resolver); err != nil {
		return false, err
	}
	ticket := c.takeTicket()
	if ticket == "" {
		if err := c.Authenticate(); err != nil {
			return false, err
		}
	}
	if err := c.bind(domain); err != nil {
		return false, err
	}
	if c.Forward() { // also with a ticket: the owner of the topic issued it
		return true, nil
	}
	if ticket != "" {
		err = c.redeem(ticket)
	} else {
		err = c.Meter()
	}
	if err != nil {
		return false, err
	}
	return false, c.Authorize(c.route.Value.permission)
}

// bind parses the names in the path into the call.
func (c *call) bind(domain names.Domain) error {
	if err := brokerhttp.CheckDomain(domain); err != nil {
		return err
	}
	param := func(name string) string { return c.route.Param(&c.path, name) }
	if err := c.SetTopic(param("tenant"), param("namespace"), param("topic")); err != nil {
		return err
	}
	if c.route.Value.subscription {
		return c.SetSubscription(param("subscription"))
	}
	return nil
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

// reauthorize authorizes the call again before it returns messages: while it waited,
// its credential may have been revoked or its role removed.
func (c *call) reauthorize() error {
	if !c.Principal.Live() {
		return identity.ErrInvalidToken
	}
	return c.Authorize(brokerhttp.PermitConsume)
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func (c *call) document() error {
	c.Started = true
	web.WriteBody(c.W, http.StatusOK, "application/yaml", openapi.Document("messages"))
	return nil
}
