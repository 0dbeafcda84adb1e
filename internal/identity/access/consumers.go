package access

import (
	"freshet/internal/base/names"
	"freshet/internal/identity"
)

// Consumers is a consumer group for a decision of MayUse. It is a resource of its tenant.
type Consumers struct {
	Scope  Scope // of the group: its tenant, and its name as Subscription
	Topics []names.Topic
	// Unknown is set if the group reads topics that nobody can list. Then only a permission on the group itself
	// allows its use.
	Unknown bool
}

// TopicScope returns the scope of a topic that the group reads. A permission that is restricted to
// subscriptions with the group's name applies to it.
func (s *Consumers) TopicScope(topic names.Topic) Scope {
	cluster := s.Scope
	cluster.Tenant = ""
	scope := TopicScope(cluster, topic)
	scope.Subscription = s.Scope.Subscription
	return scope
}

// MayUse reports whether a caller may use a consumer group. All surfaces call it, so that the same
// principals use a group over HTTP and over the Kafka protocol. may decides about one permission on one scope.
//
// The caller needs one of the permissions on the group: in the whole tenant, or restricted to subscriptions of
// the group's name. Otherwise it needs the permission onTopics on every topic that the group reads, at least
// one. may evaluates conditions of bindings for each topic.
func (s *Consumers) MayUse(may func(Permission, Scope) (bool, error), onAll []Permission,
	onTopics ...Permission,
) (bool, error) {
	if ok, err := anyOf(may, s.Scope, onAll); ok || err != nil {
		return ok, err
	}
	if s.Unknown || len(s.Topics) == 0 {
		return false, nil
	}
	for _, topic := range s.Topics {
		if ok, err := anyOf(may, s.TopicScope(topic), onTopics); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func anyOf(may func(Permission, Scope) (bool, error), scope Scope, permissions []Permission) (bool, error) {
	for _, p := range permissions {
		if ok, err := may(p, scope); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// PrincipalID returns the name of a principal under which clusters store what belongs to it, such as the members
// of a consumer group. It does not depend on the server's address, unlike Principal.Name.
func PrincipalID(principal *identity.Principal) string {
	switch {
	case principal.ServiceAccount != "":
		return principal.ServiceAccount + "@" + principal.Organization
	case principal.User != "":
		return identity.UserRole(principal.User) + "@" + principal.Organization
	}
	return principal.Name
}
