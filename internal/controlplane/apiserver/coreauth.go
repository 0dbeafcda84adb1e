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

// isNamespace: organizations are namespaces to the tools of Kubernetes.
func isNamespace(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == corev1.GroupName && a.GetResource() == "namespaces" && a.GetSubresource() == ""
}

func isEvent(a authorizer.Attributes) bool {
	return (a.GetAPIGroup() == corev1.GroupName || a.GetAPIGroup() == eventsv1.GroupName) &&
		a.GetResource() == "events" && a.GetSubresource() == ""
}

// isQuota: what an organization may have, and has.
func isQuota(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == corev1.GroupName && a.GetResource() == "resourcequotas" && a.GetSubresource() == ""
}

var quotaVerbs = []string{"get", "list"}

// authorizeQuota lets everybody read the quotas of their organization; those of
// clusters are shown to whoever may read the cluster.
func authorizeQuota(who caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(quotaVerbs, a.GetVerb()):
		return "quotas come from the server's configuration and cannot be changed here"
	case who.System || a.GetNamespace() == who.Organization:
		return ""
	case a.GetNamespace() == "":
		return "only a system administrator may look across organizations; name one in the path: " +
			"/namespaces/{organization}/resourcequotas"
	}
	return who.Name + " belongs to organization " + who.Organization
}

var (
	namespaceVerbs = []string{"get", "list", "watch", "create", "delete"}
	eventVerbs     = []string{"get", "list", "watch"}
)

// authorizeNamespace lets everybody see the organization they belong to, and the
// system administrator all of them. Lists are narrowed where they are made.
func authorizeNamespace(who caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(namespaceVerbs, a.GetVerb()):
		return "an organization has nothing to change"
	case who.System:
		return ""
	case a.GetVerb() == "create" || a.GetVerb() == "delete":
		return "only a system administrator creates and deletes organizations"
	case a.GetVerb() == "get" && a.GetName() != who.Organization:
		return who.Name + " belongs to organization " + who.Organization
	}
	return ""
}

// authorizeEvent lets everybody ask in their organization; which events they get
// depends on what they may read there.
func authorizeEvent(who caller.Caller, a authorizer.Attributes) string {
	switch {
	case !slices.Contains(eventVerbs, a.GetVerb()):
		return "events are written by the service"
	case who.System || a.GetNamespace() == who.Organization:
		return ""
	case a.GetNamespace() == "":
		return "only a system administrator may look across organizations; name one in the path: " +
			"/namespaces/{organization}/events"
	}
	return who.Name + " belongs to organization " + who.Organization
}

// readable implements events.Readable: whoever may read an object may read what
// happened to it.
func (p policy) readable(ctx context.Context, namespace string) func(corev1.ObjectReference) bool {
	who := caller.Principal(ctx)
	if who == nil || who.System {
		return func(corev1.ObjectReference) bool { return who == nil || who.Live() }
	}
	filters := map[string]access.Filter{}
	allowed := map[corev1.ObjectReference]bool{} // where an object lies has to be read
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
