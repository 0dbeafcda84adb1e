package access

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/identity"
)

// Authorizer decides whether a principal has a permission on a scope. It rejects with an
// error of kind Denied. Policy implements it.
type Authorizer interface {
	Authorize(ctx context.Context, principal *identity.Principal, permission Permission, scope Scope) (Decision, error)
}

// ClusterPermissions are the permissions that a cluster stores itself, in addition to role
// bindings: the administrators of its tenants, and actions on namespaces and topics that
// Pulsar's admin API grants. messaging.ClusterGrants implements it.
type ClusterPermissions interface {
	// Granted reports whether the cluster grants a role a permission on a topic. A topic
	// without a local name stands for its namespace, one without a namespace for its tenant.
	Granted(role string, permission Permission, topic names.Topic) bool
	// GrantedWithin reports whether the cluster grants a role a permission on any resource
	// of a namespace, of a tenant if the namespace has no name, or of the whole cluster if
	// it has no tenant either.
	GrantedWithin(role string, permission Permission, within names.Namespace) bool
}

// TopicScope returns the scope of a topic. cluster is the scope of the topic's cluster.
func TopicScope(cluster Scope, topic names.Topic) Scope {
	cluster.Tenant, cluster.Namespace = topic.Namespace.Tenant, topic.Namespace.Name
	cluster.TopicDomain, cluster.Topic = string(names.Persistent), topic.Local
	return cluster
}

// AuthorizeTopic decides whether a principal has a permission on a topic of a cluster, or
// on another resource in the cluster: a subscription, a namespace, a consumer group, a
// tenant or the cluster itself. All surfaces of a cluster's topics call it, so that a
// principal has the same permissions over HTTP and over the Kafka protocol.
//
// scope names the resource. The principal has the permission if a role binding or its
// administrator status gives it (policy), or if the cluster itself grants it (cluster). The
// error of a denial is that of policy.
//
// The permissions of a cluster apply to principals of the cluster's own organization only.
// A tenant's administrators have all permissions in the tenant, but none on the tenant
// itself: they cannot delete it or make others its administrators. A consumer group is a
// resource in its tenant; its scope has the group's name as Subscription.
func AuthorizeTopic(ctx context.Context, policy Authorizer, cluster ClusterPermissions,
	principal *identity.Principal, permission Permission, scope Scope,
) (Decision, error) {
	decision, err := policy.Authorize(ctx, principal, permission, scope)
	if err == nil || errs.KindOf(err) != errs.Denied {
		return decision, err
	}
	inTenant := scope.Tenant != "" && (scope.Namespace != "" || scope.Subscription != "")
	if !inTenant || !clusterPermissionsApply(principal, &scope) {
		return Decision{}, err
	}
	topic := names.Topic{
		Namespace: names.Namespace{Tenant: scope.Tenant, Name: scope.Namespace},
		Local:     scope.Topic,
	}
	if cluster.Granted(clusterRole(principal), permission, topic) {
		return Decision{Allowed: true, By: ByCluster}, nil
	}
	return Decision{}, err
}

// GrantedWithin reports whether the cluster itself grants a principal a permission on any
// resource of the namespace of scope, of its tenant if scope has no namespace, or of the
// whole cluster if scope has no tenant.
func GrantedWithin(cluster ClusterPermissions, principal *identity.Principal, permission Permission, scope Scope) bool {
	return clusterPermissionsApply(principal, &scope) &&
		cluster.GrantedWithin(clusterRole(principal), permission,
			names.Namespace{Tenant: scope.Tenant, Name: scope.Namespace})
}

// clusterPermissionsApply reports whether the permissions that the cluster of scope stores
// itself apply to the principal.
func clusterPermissionsApply(principal *identity.Principal, scope *Scope) bool {
	return principal != nil && principal.Organization == scope.Organization &&
		(principal.Instance == "" || principal.Instance == scope.Instance)
}

// clusterRole returns the role of a principal in the permissions that clusters store: for
// a service account its name without the server's address.
func clusterRole(principal *identity.Principal) string {
	if principal.ServiceAccount != "" {
		return principal.ServiceAccount + "@" + principal.Organization
	}
	return principal.Name
}
