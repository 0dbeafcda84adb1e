package messageapi

import (
	"net/http"

	"freshet/api/openapi"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/pipeline"
)

// call is the state of one request. Only denied calls get an audit record: there are too
// many messages to record each one.
type call struct {
	brokerhttp.Call
	api    *API
	path   web.Path
	domain names.Domain
	route  *web.Route[operation]
	ticket string // a ticket that has not been redeemed yet; "" for calls with a token
}

// Route implements pipeline.Steps. The path may have the topic's domain before the tenant.
// That is unambiguous, because no tenant can have the name of a domain.
func (c *call) Route() error {
	c.path.Parse(c.R.URL)
	var hasDomain bool
	if c.domain, hasDomain = names.ParseDomain(c.path.Segment(domainSegment)); hasDomain {
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
		if err := c.path.Err(); err != nil {
			return err
		}
		return pipeline.NoRoute(&c.Call.Call, c.api.router, &c.path)
	}
	c.SetRoute(route.Pattern)
	c.route = route
	c.Public, c.Unlimited = route.Value.permission == "", route.Value.waits
	return nil
}

// Resolve implements pipeline.Steps.
func (c *call) Resolve() error { return c.ResolveBy(c.api.opts.Resolver) }

// Authenticate implements pipeline.Steps. A ticket is not checked here: the owner of the
// topic has issued it, so only the owner can check it.
func (c *call) Authenticate() error {
	if c.ticket = c.takeTicket(); c.ticket != "" {
		return nil
	}
	return c.Call.Authenticate()
}

// Forward implements pipeline.Steps.
func (c *call) Forward() (forwarded bool, err error) {
	if err := c.bind(); err != nil {
		return false, err
	}
	return c.ForwardToOwner(), nil
}

// Authorize implements pipeline.Steps.
func (c *call) Authorize() error { return c.Require(c.route.Value.permission) }

// Handle implements pipeline.Steps.
func (c *call) Handle() error { return c.route.Value.handle(c) }

// bind parses the names in the path into the call.
func (c *call) bind() error {
	if err := brokerhttp.CheckDomain(c.domain); err != nil {
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

// reauthorize authorizes the call again before it returns messages: while it waited,
// its credential may have been revoked or its role removed.
func (c *call) reauthorize() error {
	if !c.Principal.Live() {
		return identity.ErrInvalidToken
	}
	return c.Require(brokerhttp.PermitConsume)
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func (c *call) document() error {
	c.Started = true
	web.WriteBody(c.W, http.StatusOK, "application/yaml", openapi.Document("messages"))
	return nil
}
