package messagingcluster

import (
	"cmp"
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/owners"
)

const (
	defaultBrokers      = 2
	defaultStorageNodes = 3
	defaultCPU          = "1"
	defaultMemory       = "4Gi"
)

// NodeTypeShared is the node type of embedded pool members: everything runs in the server's process
// and shares its resources.
const NodeTypeShared = "shared"

// Default implements store.Defaulter. It sets the defaults that depend on no other resource.
func (*Kind) Default(o *object) {
	o.Spec.ReleaseChannel = cmp.Or(o.Spec.ReleaseChannel, v1alpha1.ReleaseChannelRapid)
	b := &o.Spec.Broker
	if b.Replicas == nil {
		b.Replicas = count(defaultBrokers)
		if b.ResourceSpec != nil && b.ResourceSpec.NodeType == NodeTypeShared && b.Resources == nil {
			b.Replicas = count(1)
		}
	}
	if b.Resources == nil && b.ResourceSpec == nil {
		b.Resources = &v1alpha1.BrokerResources{
			CPU:    resource.MustParse(defaultCPU),
			Memory: resource.MustParse(defaultMemory),
		}
	}
	if s := o.Spec.Storage; s != nil {
		setStorageDefaults(s)
	}
	if c := o.Spec.Config; c != nil {
		dropNullProtocols(c)
	}
}

// dropNullProtocols disables the protocols that are set to null.
func dropNullProtocols(c *v1alpha1.ClusterConfig) {
	maps.DeleteFunc(c.Protocols,
		func(_ string, settings v1alpha1.ProtocolSettings) bool { return len(settings.Raw) == 0 })
	if len(c.Protocols) == 0 {
		c.Protocols = nil
	}
}

func setStorageDefaults(s *v1alpha1.Storage) {
	if shared := s.ResourceSpec != nil && s.ResourceSpec.NodeType == NodeTypeShared &&
		s.Resources == nil; s.Replicas == nil && !shared {
		s.Replicas = count(defaultStorageNodes)
	}
	if s.Resources == nil && s.ResourceSpec == nil {
		s.Resources = &v1alpha1.StorageResources{
			CPU:    resource.MustParse(defaultCPU),
			Memory: resource.MustParse(defaultMemory),
		}
	}
}

// PrepareCreate implements store.Preparer. It sets the fields that the service decides: the pool
// member, the host name of the cluster, and the images.
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
	if o.Spec.Storage == nil && (!found || instance.Spec.Type != v1alpha1.InstanceServerless) {
		o.Spec.Storage = &v1alpha1.Storage{}
		setStorageDefaults(o.Spec.Storage)
	}
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
// whatever a replace contains.
func (*Kind) PrepareUpdate(_ context.Context, o, old *object) {
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
}

func count(n int32) *int32 { return &n }
