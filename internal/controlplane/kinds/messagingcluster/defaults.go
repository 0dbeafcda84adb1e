package messagingcluster

import (
	"cmp"
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/owners"
	"freshet/internal/dataplane/provision"
)

// The size of a serverless cluster. It is prescribed.
const (
	serverlessBrokers = 2
	serverlessCPU     = "1"
	serverlessMemory  = "4Gi"
)

// NodeTypeShared is the node type of embedded pool members: everything runs in the server's process
// and shares its resources.
const NodeTypeShared = "shared"

// Default implements store.Defaulter. It runs on stored objects too, so it sets only what every stored
// cluster has; PrepareCreate sets the defaults of new clusters.
func (*Kind) Default(o *object) {
	o.Spec.ReleaseChannel = cmp.Or(o.Spec.ReleaseChannel, v1alpha1.ReleaseChannelRapid)
	if c := o.Spec.Config; c != nil {
		dropNullProtocols(c)
	}
}

// dropNullProtocols disables the protocols that are set to null. A map without entries stays: at
// creation it means that no protocol is enabled.
func dropNullProtocols(c *v1alpha1.ClusterConfig) {
	maps.DeleteFunc(c.Protocols,
		func(_ string, settings v1alpha1.ProtocolSettings) bool { return len(settings.Raw) == 0 })
}

// setProtocols enables the Kafka protocol on a new cluster that names no protocols
// (docs/spec/stream.md#k28).
func setProtocols(o *object) {
	if o.Spec.Config == nil {
		o.Spec.Config = &v1alpha1.ClusterConfig{}
	}
	if c := o.Spec.Config; c.Protocols == nil {
		c.Protocols = map[string]v1alpha1.ProtocolSettings{ProtocolStream: {Raw: []byte("{}")}}
	}
}

// running returns the number of brokers and of copies that the pool member runs: one each on a single
// server.
func (k *Kind) running() (brokers, copies int32) {
	members := 1
	if k.plane != nil {
		members, _ = k.plane.Membership()
	}
	members = min(max(members, 1), maxReplicas)
	return int32(members), int32(min(members, provision.DefaultCopies))
}

// setSizes sets the sizes that a new cluster omits. They request nothing that the pool member does not
// provide (docs/spec/resources.md#r18).
func (k *Kind) setSizes(o *object, serverless bool) {
	b := &o.Spec.Broker
	if serverless {
		if b.Replicas == nil {
			b.Replicas = count(serverlessBrokers)
		}
		if b.Resources == nil && b.ResourceSpec == nil {
			b.Resources = &v1alpha1.BrokerResources{
				CPU: resource.MustParse(serverlessCPU), Memory: resource.MustParse(serverlessMemory),
			}
		}
		return
	}
	brokers, copies := k.running()
	if b.Replicas == nil {
		b.Replicas = count(brokers)
	}
	if o.Spec.Storage == nil {
		o.Spec.Storage = &v1alpha1.Storage{}
	}
	if s := o.Spec.Storage; s.Replicas == nil {
		s.Replicas = count(copies)
	}
}

// PrepareCreate implements store.Preparer. It sets the fields that the service decides, the pool
// member, the host name of the cluster and the images, and the defaults of the others.
func (k *Kind) PrepareCreate(ctx context.Context, o *object) {
	instance, found := k.Instances.Lookup(ctx, o.Namespace, o.Spec.InstanceName)
	var pool *v1alpha1.ObjectReference
	if found {
		pool = instance.Spec.PoolRef
		// Set the owner in the write that creates the cluster, so that a foreground deletion of the
		// instance immediately afterwards finds the cluster.
		owners.Add(o, instance, "MessagingInstance")
	}
	k.resolvePoolMember(o, pool)
	o.Spec.ServiceEndpoints = []v1alpha1.ServiceEndpoint{k.plan.Endpoint(o.Name, o.Namespace)}
	k.setSizes(o, found && instance.Spec.Type == v1alpha1.InstanceServerless)
	setProtocols(o)
	images := k.plan.Images[o.Spec.ReleaseChannel]
	o.Spec.Broker.Image = images.Broker
	if o.Spec.Storage != nil {
		o.Spec.Storage.Image = images.Storage
	}
}

// resolvePoolMember resolves location and pool member from each other; ValidateCreate rejects a cluster for
// which that fails.
func (k *Kind) resolvePoolMember(o *object, pool *v1alpha1.ObjectReference) {
	if o.Spec.PoolMemberRef == nil {
		if ref, ok := k.plan.AtLocation(pool, o.Spec.Location); ok {
			o.Spec.PoolMemberRef = ref
		}
		return
	}
	owner, member, ok := k.plan.Member(o.Spec.PoolMemberRef)
	if !ok {
		return
	}
	o.Spec.PoolMemberRef.Namespace = owner.Namespace
	o.Spec.Location = cmp.Or(o.Spec.Location, member.Location)
}

// PrepareUpdate implements store.Preparer. It restores the fields that the service has set,
// whatever a replace contains, and the numbers of replicas that a replace omits.
func (k *Kind) PrepareUpdate(ctx context.Context, o, old *object) {
	disownDisabledProtocols(o)
	if o.Spec.PoolMemberRef == nil {
		o.Spec.PoolMemberRef = old.Spec.PoolMemberRef
	}
	o.Spec.Location = cmp.Or(o.Spec.Location, old.Spec.Location)
	o.Spec.ServiceEndpoints = old.Spec.ServiceEndpoints
	o.Spec.Broker.Image = old.Spec.Broker.Image
	if o.Spec.Storage == nil {
		o.Spec.Storage = old.Spec.Storage
	}
	if o.Spec.Storage != nil && old.Spec.Storage != nil {
		o.Spec.Storage.Image = old.Spec.Storage.Image
	}
	k.setOmittedReplicas(o, old)
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Verb == "update" {
		keepOmittedProtocols(o, old)
	}
}

// keepOmittedProtocols restores the protocols that a replace omits, so that the manifest that created a
// cluster does not disable its default protocol when it is sent again. A patch contains what it changes.
func keepOmittedProtocols(o, old *object) {
	if old.Spec.Config == nil || len(old.Spec.Config.Protocols) == 0 ||
		o.Spec.Config != nil && o.Spec.Config.Protocols != nil {
		return
	}
	if o.Spec.Config == nil {
		o.Spec.Config = &v1alpha1.ClusterConfig{}
	}
	o.Spec.Config.Protocols = maps.Clone(old.Spec.Config.Protocols)
}

// setOmittedReplicas sets the numbers of replicas that a change omits to those that run. A stored
// cluster without a number keeps none, so that a change of its metadata does not change its spec.
func (k *Kind) setOmittedReplicas(o, old *object) {
	brokers, copies := k.running()
	if old.Spec.Storage == nil { // serverless
		brokers = serverlessBrokers
	}
	if o.Spec.Broker.Replicas == nil && old.Spec.Broker.Replicas != nil {
		o.Spec.Broker.Replicas = count(brokers)
	}
	if s, before := o.Spec.Storage, old.Spec.Storage; s != nil && s.Replicas == nil && before != nil &&
		before.Replicas != nil {
		s.Replicas = count(copies)
	}
}

func count(n int32) *int32 { return &n }
