package brokerhttp

import (
	"context"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

// Surface is the name of both surfaces in records and metrics. Their callers use them
// as one interface.
const Surface = "messages"

// Cluster is the target of a request.
type Cluster struct {
	Broker *messaging.Broker
	// Groups returns the coordinator of the Kafka consumer groups. It is nil if the
	// cluster does not serve the Kafka protocol. Calls on messages do not need it.
	Groups func(context.Context) (*groups.Coordinator, error)
	// Scope has the organization, instance and cluster; calls add the names in the path.
	Scope access.Scope
	// Audiences are the names under which the cluster accepts tokens.
	Audiences []string
	// Quota limits the cluster; nil: no limit.
	Quota *quota.Cluster
	// Members finds the server that handles a call.
	Members Members
}

// Resolver finds the cluster of a request.
type Resolver = pipeline.Resolver[Cluster]

// Call is the state of one request.
type Call struct {
	W       http.ResponseWriter
	R       *http.Request
	Options *pipeline.Options

	Cluster   Cluster
	Principal *identity.Principal

	// The names in the path; those that it does not have are empty.
	Tenant       string
	Namespace    names.Namespace
	Topic        names.Topic
	Subscription string
	Group        string // a consumer group of the tenant

	Allow   string // the allowed methods, if the request's method is not allowed
	Started bool   // the response has been started

	permission access.Permission // the last permission that was checked, for the audit record
	decision   access.Decision   // the decision that allowed it
	reserved   int64             // bytes that the body has reserved at the limiter
}

// Broker returns the cluster's broker.
func (c *Call) Broker() *messaging.Broker { return c.Cluster.Broker }

// WorkContext returns the context for expensive calls. It names the organization and the
// principal, so that the work pool can share its capacity fairly.
func (c *Call) WorkContext() context.Context {
	return workpool.WithCaller(c.R.Context(),
		workpool.Caller{Organization: c.Principal.Organization, Principal: c.Principal.Name})
}

// Resolve finds the cluster. A caller that does not belong to the cluster's organization
// cannot find out whether the cluster exists.
func (c *Call) Resolve(resolver Resolver) (err error) {
	if c.Cluster, err = resolver.Resolve(c.R); err == nil {
		return nil
	}
	token, credentialsErr := credentials(c.R)
	if credentialsErr != nil {
		return credentialsErr
	}
	return pipeline.Disclose(c.R.Context(), c.Options.Authenticator, token, err)
}

// Authenticate identifies the caller by its token.
func (c *Call) Authenticate() error {
	token, err := credentials(c.R)
	if err != nil {
		return err
	}
	c.Principal, err = c.Options.Authenticate(c.R, token, c.Cluster.Audiences...)
	return err
}

// Forward sends the call to the member that owns its topic, if that is another member,
// and reports whether that member responded. It must run before the body is read. The
// owner repeats all checks. Only the owner counts the call against the quota.
func (c *Call) Forward() bool {
	if c.Topic.Local == "" {
		return false
	}
	return c.Send(c.Cluster.Members.Owner(c.R, c.Topic))
}

// Send forwards the call to another member and reports whether that member responded.
func (c *Call) Send(send Sender) bool {
	if send == nil {
		return false
	}
	err := send(c.W, c.R)
	c.Started = c.Started || err == nil
	return err == nil // otherwise this member handles the call, which waits for a new owner
}

// Meter counts the call against the quotas of the cluster and its organization, and
// rejects it if they are exceeded. System administrators are exempt.
func (c *Call) Meter() error {
	if c.Principal.System || c.Cluster.Quota == nil {
		return nil
	}
	web.RecordOf(c.R.Context()).Meter = c.Cluster.Quota
	return c.Cluster.Quota.Admit()
}

// Caller returns the caller for the limiter. It is the zero Caller before Authenticate.
func (c *Call) Caller() web.Caller {
	if c.Principal == nil {
		return web.Caller{}
	}
	return web.Caller{Organization: c.Principal.Organization, Principal: c.Principal.Name}
}

// Release returns the bytes that the body has reserved to the limiter.
func (c *Call) Release() {
	c.Options.Limiter.Release(c.Caller(), c.reserved)
	c.reserved = 0
}

// SetTopic sets the topic from the three parts of its name.
func (c *Call) SetTopic(tenant, namespace, local string) error {
	var err error
	c.Topic, err = names.NewTopic(tenant, namespace, local)
	if err != nil {
		return NameError(err)
	}
	c.Namespace, c.Tenant = c.Topic.Namespace, tenant
	return nil
}

// SetNamespace sets the namespace from the two parts of its name.
func (c *Call) SetNamespace(tenant, namespace string) error {
	var err error
	c.Namespace, err = names.NewNamespace(tenant, namespace)
	if err != nil {
		return NameError(err)
	}
	c.Tenant = tenant
	return nil
}

// NameError wraps an error about a malformed name.
func NameError(err error) error {
	return errs.Newf(errs.Invalid, "%w: %w", messaging.ErrName, err)
}

// SetSubscription sets the subscription. Quirk: a malformed name of a subscription is
// 400 while other malformed names are 412, as in Pulsar.
func (c *Call) SetSubscription(name string) error {
	if err := names.CheckSubscription(name); err != nil {
		return WithStatus(http.StatusBadRequest, NameError(err))
	}
	c.Subscription = name
	return nil
}

// CheckDomain rejects topics that are not persistent.
func CheckDomain(domain names.Domain) error {
	if domain == names.NonPersistent {
		return WithStatus(http.StatusBadRequest, errNonPersistent)
	}
	return nil
}

var errNonPersistent = errs.New(errs.Invalid, "non-persistent topics are not supported; use the domain persistent")

// JSON responds with a JSON value.
func (c *Call) JSON(code int, v any) error {
	c.Started = true
	return web.WriteJSON(c.W, code, contentJSON, v)
}

const contentJSON = "application/json"

// NoContent responds with 204.
func (c *Call) NoContent() {
	c.Started = true
	c.W.WriteHeader(http.StatusNoContent)
}
