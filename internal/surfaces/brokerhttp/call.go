package brokerhttp

import (
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/history"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

// Surface is the name of both surfaces in records and metrics. Their callers use them
// as one interface.
const Surface = "messages"

// Cluster is the target of a request.
type Cluster struct {
	// The parts of the cluster's broker.
	Catalogue  *messaging.Catalogue
	Grants     access.ClusterPermissions
	Schemas    *messaging.TopicSchemas
	Producer   *messaging.Producer
	Consumer   *messaging.Consumer
	Searcher   *messaging.Searcher
	Replayer   *messaging.Replayer
	Kafka      *messaging.KafkaLog
	Statistics *messaging.Statistics
	// UID identifies the cluster in History, the recorded statistics of this server.
	UID     string
	History *history.Recorder
	// Limits are the limits of the broker.
	Limits messaging.Limits
	// Groups are the Kafka consumer groups. It is nil if the cluster does not serve the
	// Kafka protocol. Calls on messages do not need it.
	Groups Groups
	// Scope has the organization, instance and cluster; calls add the names in the path.
	Scope access.Scope
	// Audiences are the names under which the cluster accepts tokens.
	Audiences []string
	// Quota limits the cluster; nil: no limit.
	Quota *quota.Cluster
	// Members finds the server that handles a call.
	Members Members
}

// Groups are the consumer groups of a cluster.
type Groups interface {
	// Coordinator returns the coordinator of the groups, and opens it on first use.
	Coordinator() (*groups.Coordinator, error)
}

// Resolver finds the cluster of a request.
type Resolver = pipeline.Resolver[Cluster]

// Call is the state of one request.
type Call struct {
	pipeline.Call

	Cluster Cluster

	// The names in the path; those that it does not have are empty.
	Tenant       string
	Namespace    names.Namespace
	Topic        names.Topic
	Subscription string
	Group        string // a consumer group of the tenant
}

// ResolveBy finds the cluster.
func (c *Call) ResolveBy(resolver Resolver) error {
	err := pipeline.Resolve(&c.Call, resolver, &c.Cluster)
	c.Audiences, c.Quota = c.Cluster.Audiences, c.Cluster.Quota
	return err
}

// ForwardToOwner sends the call to the member that owns its topic, if that is another member,
// and reports whether that member responded. The owner repeats all checks. Only the owner
// counts the call against the quota.
func (c *Call) ForwardToOwner() bool {
	if c.Topic.Local == "" {
		return false
	}
	return c.Send(c.Cluster.Members.Owner(c.R, c.Topic))
}

// Send forwards the call to another member and reports whether that member responded. It
// must run before the body is read.
func (c *Call) Send(send Sender) bool {
	if send == nil {
		return false
	}
	err := send(c.W, c.R)
	c.Started = c.Started || err == nil
	return err == nil // otherwise this member handles the call, which waits for a new owner
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
