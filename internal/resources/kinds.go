package resources

import (
	"context"

	"freshet/api/v1alpha1"
	"freshet/internal/resources/placement"
	"freshet/internal/resources/registry"
	"freshet/internal/resources/registry/apikey"
	"freshet/internal/resources/registry/clusterrole"
	"freshet/internal/resources/registry/messagingcluster"
	"freshet/internal/resources/registry/messaginginstance"
	"freshet/internal/resources/registry/pool"
	"freshet/internal/resources/registry/poolmember"
	"freshet/internal/resources/registry/rolebinding"
	"freshet/internal/resources/registry/serviceaccount"
	"freshet/internal/resources/registry/serviceaccountbinding"
	"freshet/internal/resources/registry/user"
)

// KindOptions is what the kinds need from the rest of the service.
type KindOptions struct {
	Plan     *placement.Plan
	Issuing  apikey.Issuing
	Rules    rolebinding.Rules
	Guard    serviceaccount.Guard
	Accounts registry.Observer[*v1alpha1.ServiceAccount]
	Keys     registry.Observer[*v1alpha1.APIKey]
	Bindings registry.Observer[*v1alpha1.RoleBinding]
	// Instances is told of instances, for their data planes and keys.
	Instances registry.Observer[*v1alpha1.MessagingInstance]
}

// Kinds defines all ten kinds. The ones that look at each other do so through
// their stores.
func Kinds(opts KindOptions) []registry.Definition {
	var instances, clusters registry.Definition
	clustersOf := func(ctx context.Context, namespace, instance string) (names, protected []string, err error) {
		return registry.NamesWhere(ctx, clusters, namespace, "spec.instanceName", instance)
	}
	instanceOf := func(ctx context.Context, namespace, name string) (*v1alpha1.MessagingInstance, bool) {
		return registry.Lookup[*v1alpha1.MessagingInstance](ctx, instances, namespace, name)
	}
	instances = messaginginstance.Definition(opts.Plan, clustersOf, opts.Instances)
	clusters = messagingcluster.Definition(opts.Plan, instanceOf, registry.Observer[*v1alpha1.MessagingCluster]{})
	return []registry.Definition{
		serviceaccount.Definition(opts.Guard, opts.Accounts),
		serviceaccountbinding.Definition(),
		user.Definition(),
		instances,
		clusters,
		apikey.Definition(opts.Issuing, opts.Keys),
		rolebinding.Definition(opts.Rules, opts.Bindings),
		clusterrole.Definition(),
		pool.Definition(),
		poolmember.Definition(),
	}
}
