package messageapi

import (
	"net/http"
	"strings"

	"freshet/api/openapi"
	"freshet/internal/access"
	"freshet/internal/errs"
	"freshet/internal/identity"
	"freshet/internal/messaging"
	"freshet/internal/names"
	"freshet/internal/web"
)

// call is one request on its way through the surface.
type call struct {
	api *API
	w   http.ResponseWriter
	r   *http.Request

	cluster   Cluster
	principal *identity.Principal

	surface surface
	route   *route

	// What the path names, as far as it does.
	tenant       string
	namespace    names.Namespace
	topic        names.Topic
	subscription string
	domain       string    // where it makes a difference
	args         [2]string // numbers, roles and other free parts of the path

	allow      string            // the methods that exist, when the one asked for does not
	permission access.Permission // what was asked for last, for the audit
	decision   access.Decision   // what allowed it
	began      bool              // the response has begun
	held       int64             // room at the gate for the body
}

// surface decides how errors look: message calls know one status for all that
// is wrong with the caller (decision M11).
type surface uint8

const (
	messages surface = iota
	admin
	stream
)

const surfaceName = "messages"

func (c *call) serve() error {
	path := c.r.URL.Path
	switch {
	case strings.HasPrefix(path, messageRoot):
		return c.serveMessage()
	case strings.HasPrefix(path, adminRoot):
		c.surface = admin
		return c.serveAdmin(adminRoot)
	case strings.HasPrefix(path, streamRoot):
		c.surface = stream
		return c.serveAdmin(streamRoot)
	case path == documentPath && c.r.Method == http.MethodGet:
		return c.document()
	}
	return errNoRoute
}

// document is open to everybody, as it holds no secret.
func (c *call) document() error {
	web.RecordOf(c.r.Context()).SetRoute(surfaceName, documentPath)
	c.began = true
	web.WriteBody(c.w, http.StatusOK, "application/yaml", openapi.Document("messages"))
	return nil
}

func (c *call) broker() *messaging.Broker { return c.cluster.Broker }

// enter finds the cluster and the caller.
func (c *call) enter() error {
	var err error
	if c.cluster, err = c.api.opts.Resolve(c.r); err != nil {
		return err
	}
	token, ok := web.BearerToken(c.r)
	if !ok {
		return identity.ErrNoToken
	}
	c.principal, err = c.api.opts.Verifier.Verify(c.r.Context(), token, c.cluster.Audiences...)
	if err != nil {
		return err
	}
	if rec := web.RecordOf(c.r.Context()); rec != nil {
		rec.Principal = c.principal.Name
	}
	return nil
}

// scope is what the path names, for access.
func (c *call) scope() access.Scope {
	s := c.cluster.Scope
	switch {
	case c.topic.Local != "":
		s.Tenant, s.Namespace = c.topic.Namespace.Tenant, c.topic.Namespace.Name
		s.TopicDomain, s.Topic, s.Subscription = string(names.Persistent), c.topic.Local, c.subscription
	case c.namespace.Name != "":
		s.Tenant, s.Namespace = c.namespace.Tenant, c.namespace.Name
	default:
		s.Tenant = c.tenant
	}
	return s
}

// authorize asks for permissions; any one of them will do.
func (c *call) authorize(wanted ...access.Permission) error {
	scope := c.scope()
	var denial error
	for _, p := range wanted {
		c.permission = p
		decision, err := c.api.opts.Policy.Authorize(c.r.Context(), c.principal, p, scope)
		if err == nil {
			c.decision = decision
			return nil
		}
		if errs.KindOf(err) != errs.Denied {
			return err
		}
		if denial == nil {
			denial = err
		}
		if c.granted(p) {
			c.decision = access.Decision{Allowed: true, By: byCluster}
			return nil
		}
	}
	c.permission = wanted[0]
	return denial
}

// stillAllowed asks again before messages are handed out: a call that waited
// must not outlive the credential or the role it came in with.
func (c *call) stillAllowed() error {
	if !c.principal.Live() {
		return identity.ErrInvalidToken
	}
	return c.authorize(permitConsume)
}

// byCluster is what decides when the cluster's own permissions do.
const byCluster access.By = "cluster permission"

const (
	permitProduce = access.Permission("messaging.topics.produce")
	permitConsume = access.Permission("messaging.topics.consume")
)

// granted asks the permissions that the cluster itself keeps, as Pulsar's admin
// API sets them. They are for callers of the cluster's own organization only.
func (c *call) granted(p access.Permission) bool {
	who, scope := c.principal, &c.cluster.Scope
	if who.Organization != scope.Organization || who.Instance != "" && who.Instance != scope.Instance {
		return false
	}
	switch {
	case p == permitProduce && c.topic.Local != "":
		return c.broker().Grants(who.Name, c.topic, messaging.ActionProduce)
	case p == permitConsume && c.topic.Local != "":
		return c.broker().Grants(who.Name, c.topic, messaging.ActionConsume)
	}
	// A tenant's administrators rule what is in it, but not the tenant itself.
	tenant := c.topic.Namespace.Tenant
	if tenant == "" {
		tenant = c.namespace.Tenant
	}
	return tenant != "" && c.broker().Administers(who.Name, tenant)
}

// setTopic takes the three parts of a topic's name.
func (c *call) setTopic(tenant, namespace, local string) error {
	var err error
	c.topic, err = names.NewTopic(tenant, namespace, local)
	if err != nil {
		return nameError(err)
	}
	c.namespace, c.tenant = c.topic.Namespace, tenant
	return nil
}

func (c *call) setNamespace(tenant, namespace string) error {
	var err error
	c.namespace, err = names.NewNamespace(tenant, namespace)
	if err != nil {
		return nameError(err)
	}
	c.tenant = tenant
	return nil
}

func nameError(err error) error {
	return errs.Newf(errs.Invalid, "%w: %w", messaging.ErrName, err)
}

// setSubscription takes the name of a subscription. Quirk: a malformed one is
// 400 where other malformed names are 412, as in Pulsar.
func (c *call) setSubscription(name string) error {
	if err := names.CheckSubscription(name); err != nil {
		return status(http.StatusBadRequest, nameError(err))
	}
	c.subscription = name
	return nil
}

// setDomain refuses topics that are not persistent.
func setDomain(domain string) error {
	if names.Domain(domain) == names.NonPersistent {
		return status(http.StatusBadRequest, errNonPersistent)
	}
	return nil
}

var errNonPersistent = errs.New(errs.Invalid, "non-persistent topics are not supported")
