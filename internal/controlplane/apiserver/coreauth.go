package apiserver

import (
	"context"
	"slices"
	"strings"

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
func authorizeQuota(who caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(quotaVerbs, a.GetVerb()):
		return "quotas come from the server's configuration and cannot be changed here"
	case who.System || a.GetNamespace() == who.Organization:
		return ""
	case a.GetNamespace() == "":
		return "only a system administrator may access all organizations; put one into the path: " +
			"/namespaces/{organization}/resourcequotas"
	}
	return who.Name + " belongs to organization " + who.Organization
}

var (
	namespaceVerbs = []string{"get", "list", "watch", "create", "delete"}
	eventVerbs     = []string{"get", "list", "watch"}
)

// authorizeNamespace lets every caller read their own organization, and the system administrator
// all of them. The resource itself filters lists.
func authorizeNamespace(who caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(namespaceVerbs, a.GetVerb()):
		return "organizations cannot be changed"
	case who.System:
		return ""
	case a.GetVerb() == "create" || a.GetVerb() == "delete":
		return "only a system administrator may create and delete organizations"
	case a.GetVerb() == "get" && a.GetName() != who.Organization:
		return who.Name + " belongs to organization " + who.Organization
	}
	return ""
}

// authorizeEvent lets every caller read events in their organization. Which events they get depends
// on the objects that they may read.
func authorizeEvent(who caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(eventVerbs, a.GetVerb()):
		return "events are written by the service only"
	case who.System || a.GetNamespace() == who.Organization:
		return ""
	case a.GetNamespace() == "":
		return "only a system administrator may access all organizations; put one into the path: " +
			"/namespaces/{organization}/events"
	}
	return who.Name + " belongs to organization " + who.Organization
}

// readable implements events.Readable: a caller that may read an object may read its events.
func (p policy) readable(ctx context.Context, namespace string) func(corev1.ObjectReference) bool {
	who := caller.Principal(ctx)
	if who == nil || who.System {
		return func(corev1.ObjectReference) bool { return who == nil || who.Live() }
	}
	filters := map[string]access.Filter{}
	// Caches the results, because the scope of an object must be read from the store.
	allowed := map[corev1.ObjectReference]bool{}
	return func(about corev1.ObjectReference) bool {
		resource := strings.ToLower(about.Kind) + "s"
		kind, ok := p.kinds[resource]
		if !ok || !who.Live() || about.Namespace != who.Organization {
			return false
		}
		filter, ok := filters[resource]
		if !ok {
			permission, _ := access.ForVerb(resource, "", "get")
			filter = p.authorizer.Filter(who, permission, access.Scope{Organization: namespace})
			filters[resource] = filter
		}
		if filter.All() || filter.None() {
			return filter.All()
		}
		object := corev1.ObjectReference{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}
		may, ok := allowed[object]
		if !ok {
			may = filter.Allows(kind.Scope(ctx, about.Namespace, about.Name))
			allowed[object] = may
		}
		return may
	}
}
