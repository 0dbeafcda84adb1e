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

// Surface is the name of both surfaces in records and metrics: to their callers
// they are one.
const Surface = "messages"

// Cluster is what a request is for.
type Cluster struct {
	Broker *messaging.Broker
	// Groups returns the coordinator of consumer groups of the stream protocol; nil
	// when the cluster does not have that. Calls on messages do not need it.
	Groups func(context.Context) (*groups.Coordinator, error)
	// Scope has the organization, instance and cluster; calls add the rest.
	Scope access.Scope
	// Audiences are the names under which the cluster accepts tokens.
	Audiences []string
	// Quota is what the cluster may take; nil: everything.
	Quota *quota.Cluster
	// Owner returns what sends a request on to the member of a group that owns a
	// topic; nil when that is this one, or nobody at the moment. It is nil itself where
	// there is no group, and for requests that were sent on already.
	Owner func(r *http.Request, topic names.Topic) Sender
	// Coordinator does the same for the member that coordinates a consumer group.
	Coordinator func(r *http.Request, group groups.Key) Sender
	// Coordinators returns what sends a request to each other member that coordinates
	// consumer groups, or that it was sent on already. It fails while nobody
	// coordinates some of them, and is nil where there is no group.
	Coordinators func(r *http.Request) (others []Sender, sentOn bool, err error)
	// Reading finds the consumer groups that read a topic on all members, and says
	// whether all of them could be asked. It is nil where there is no group.
	Reading func(ctx context.Context, q *groups.ReadingQuery) (list map[string]*groups.Reading, whole bool, err error)
}

// Sender sends a request to another member, and its answer to the client. It returns
// an error when the member was not reached, and then nothing of the request is used
// up and nothing was answered.
type Sender func(w http.ResponseWriter, r *http.Request) error

// Resolver finds the cluster of a request.
type Resolver = pipeline.Resolver[Cluster]

// Call is one request on its way through a surface.
type Call struct {
	W       http.ResponseWriter
	R       *http.Request
	Options *pipeline.Options

	Cluster   Cluster
	Principal *identity.Principal

	// What the path names, as far as it does.
	Tenant       string
	Namespace    names.Namespace
	Topic        names.Topic
	Subscription string
	Group        string // a consumer group of the tenant

	Allow string // the methods that exist, when the one asked for does not
	Began bool   // the response has begun

	permission access.Permission // what was asked for last, for the audit
	decision   access.Decision   // what allowed it
	held       int64             // room at the limiter for the body
}

// Broker is the cluster's.
func (c *Call) Broker() *messaging.Broker { return c.Cluster.Broker }

// Working is the context for calls that can cost much: it says who has to wait.
func (c *Call) Working() context.Context {
	return workpool.WithShare(c.R.Context(),
		workpool.Share{Organization: c.Principal.Organization, Principal: c.Principal.Name})
}

// Resolve finds the cluster. Callers who do not belong to its organization are not
// told whether there is one.
func (c *Call) Resolve(resolver Resolver) (err error) {
	if c.Cluster, err = resolver.Resolve(c.R); err == nil {
		return nil
	}
	token, wrong := credentials(c.R)
	if wrong != nil {
		return wrong
	}
	return pipeline.Disclose(c.R.Context(), c.Options.Authenticator, token, err)
}

// Authenticate finds the caller by its token; Meter counts the call.
func (c *Call) Authenticate() error {
	token, err := credentials(c.R)
	if err != nil {
		return err
	}
	c.Principal, err = c.Options.Authenticate(c.R, token, c.Cluster.Audiences...)
	return err
}

// Forward sends the call to the member that owns its topic, if that is another one,
// and says whether it did. It comes before the body is read. The owner asks all that
// is asked here once more; only there is the call counted.
func (c *Call) Forward() bool {
	if c.Cluster.Owner == nil || c.Topic.Local == "" {
		return false
	}
	return c.Send(c.Cluster.Owner(c.R, c.Topic))
}

// Send has another member answer the call, and says whether it did.
func (c *Call) Send(send Sender) bool {
	if send == nil {
		return false
	}
	err := send(c.W, c.R)
	c.Began = c.Began || err == nil
	return err == nil // else it is tried from here, which waits for a new owner
}

// Meter counts the call for the cluster and its organization, and refuses it when
// there are too many. System administrators always come in.
func (c *Call) Meter() error {
	if c.Principal.System || c.Cluster.Quota == nil {
		return nil
	}
	web.RecordOf(c.R.Context()).Meter = c.Cluster.Quota
	return c.Cluster.Quota.Admit()
}

// Who is the caller to the limiter; nobody in particular before Authenticate.
func (c *Call) Who() web.Caller {
	if c.Principal == nil {
		return web.Caller{}
	}
	return web.Caller{Organization: c.Principal.Organization, Principal: c.Principal.Name}
}

// Release gives back what the body held.
func (c *Call) Release() {
	c.Options.Limiter.Release(c.Who(), c.held)
	c.held = 0
}

// SetTopic takes the three parts of a topic's name.
func (c *Call) SetTopic(tenant, namespace, local string) error {
	var err error
	c.Topic, err = names.NewTopic(tenant, namespace, local)
	if err != nil {
		return NameError(err)
	}
	c.Namespace, c.Tenant = c.Topic.Namespace, tenant
	return nil
}

// SetNamespace takes the two parts of a namespace's name.
func (c *Call) SetNamespace(tenant, namespace string) error {
	var err error
	c.Namespace, err = names.NewNamespace(tenant, namespace)
	if err != nil {
		return NameError(err)
	}
	c.Tenant = tenant
	return nil
}

// NameError is what is wrong with a malformed name.
func NameError(err error) error {
	return errs.Newf(errs.Invalid, "%w: %w", messaging.ErrName, err)
}

// SetSubscription takes the name of a subscription. Quirk: a malformed one is
// 400 where other malformed names are 412, as in Pulsar.
func (c *Call) SetSubscription(name string) error {
	if err := names.CheckSubscription(name); err != nil {
		return WithStatus(http.StatusBadRequest, NameError(err))
	}
	c.Subscription = name
	return nil
}

// CheckDomain refuses topics that are not persistent.
func CheckDomain(domain names.Domain) error {
	if domain == names.NonPersistent {
		return WithStatus(http.StatusBadRequest, errNonPersistent)
	}
	return nil
}

var errNonPersistent = errs.New(errs.Invalid, "non-persistent topics are not supported")

// JSON answers with a JSON value.
func (c *Call) JSON(code int, v any) error {
	c.Began = true
	return web.WriteJSON(c.W, code, contentJSON, v)
}

const contentJSON = "application/json"

// NoContent answers 204.
func (c *Call) NoContent() {
	c.Began = true
	c.W.WriteHeader(http.StatusNoContent)
}
