package apiserver

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"freshet/internal/controlplane/caller"
	"freshet/internal/identity/access"
)

// isNamespace reports whether the request is for namespaces, which are organizations.
func isNamespace(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == corev1.GroupName && a.GetResource() == "namespaces" && a.GetSubresource() == ""
}

func isEvent(a authorizer.Attributes) bool {
	return (a.GetAPIGroup() == corev1.GroupName || a.GetAPIGroup() == eventsv1.GroupName) &&
		a.GetResource() == "events" && a.GetSubresource() == ""
}

// isQuota reports whether the request is for quotas.
func isQuota(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == corev1.GroupName && a.GetResource() == "resourcequotas" && a.GetSubresource() == ""
}

var quotaVerbs = []string{"get", "list"}

// authorizeQuota lets every caller read the quotas of their organization. The quotas of clusters
// are returned only to callers that may read the cluster.
func authorizeQuota(principal caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(quotaVerbs, a.GetVerb()):
		return "quotas come from the server's configuration and cannot be changed here"
	case principal.System || a.GetNamespace() == principal.Organization:
		return ""
	case a.GetNamespace() == "":
		return "only a system administrator may access all organizations; put one into the path: " +
			"/namespaces/{organization}/resourcequotas"
	}
	return principal.Name + " belongs to organization " + principal.Organization
}

var (
	namespaceVerbs = []string{"get", "list", "watch", "create", "delete"}
	eventVerbs     = []string{"get", "list", "watch"}
)

// authorizeNamespace lets every caller read their own organization, and the system administrator
// all of them. The resource itself filters lists.
func authorizeNamespace(principal caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(namespaceVerbs, a.GetVerb()):
		return "organizations cannot be changed"
	case principal.System:
		return ""
	case a.GetVerb() == "create" || a.GetVerb() == "delete":
		return "only a system administrator may create and delete organizations"
	case a.GetVerb() == "get" && a.GetName() != principal.Organization:
		return principal.Name + " belongs to organization " + principal.Organization
	}
	return ""
}

// authorizeEvent lets every caller read events in their organization. Which events they get depends
// on the objects that they may read.
func authorizeEvent(principal caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(eventVerbs, a.GetVerb()):
		return "events are written by the service only"
	case principal.System || a.GetNamespace() == principal.Organization:
		return ""
	case a.GetNamespace() == "":
		return "only a system administrator may access all organizations; put one into the path: " +
			"/namespaces/{organization}/events"
	}
	return principal.Name + " belongs to organization " + principal.Organization
}

// readable implements events.Readable: a caller that may read an object may read its events.
func (p policy) readable(ctx context.Context, namespace string) func(corev1.ObjectReference) bool {
	principal := caller.Principal(ctx)
	if principal == nil || principal.System {
		return func(corev1.ObjectReference) bool { return principal == nil || principal.Live() }
	}
	filters := map[string]access.Filter{}
	// Caches the results, because the scope of an object must be read from the store.
	allowed := map[corev1.ObjectReference]bool{}
	return func(regarding corev1.ObjectReference) bool {
		resource, kind, ok := p.kinds.ofKind(regarding.Kind)
		if !ok || !principal.Live() || regarding.Namespace != principal.Organization {
			return false
		}
		filter, ok := filters[resource]
		if !ok {
			permission, _ := access.ForVerb(resource, "", "get")
			filter = p.authorizer.Filter(principal, permission, access.Scope{Organization: namespace})
			filters[resource] = filter
		}
		if filter.All() || filter.None() {
			return filter.All()
		}
		object := corev1.ObjectReference{Kind: regarding.Kind, Namespace: regarding.Namespace, Name: regarding.Name}
		may, ok := allowed[object]
		if !ok {
			may = filter.Allows(kind.Scope(ctx, regarding.Namespace, regarding.Name))
			allowed[object] = may
		}
		return may
	}
}
