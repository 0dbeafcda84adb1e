// Package access decides whether a principal may perform an operation on a resource.
//
// It owns permissions, predefined roles, roles of organizations, role bindings and their
// restrictions, all in memory. It does not authenticate callers (package identity), does
// not read resources (the resource store and its informers call it), and does not serve
// HTTP.
//
// Authorize denies a credential that is limited to another instance. Otherwise a call is
// allowed if one of these holds, checked in this order: the principal is a system
// administrator; the principal is an administrator of the organization of the scope; the
// call reads the principal's own account or API key; a role binding of the organization
// allows it. There are no rules that deny.
//
// AuthorizeTopic decides about the resources of a cluster. It asks Authorize first, then the
// permissions that the cluster stores itself (ClusterPermissions).
//
// # Locks
//
//	lock       protects
//	Policy.mu  the bindings, the organizations' roles, their counts, and writes to the
//	           shards and to the revision
//	budget.mu  the units that are left of one budget for conditions, and its window
//
// The two locks are never held at the same time.
//
// # Invariants
//
//   - A decision without conditions takes no lock (BenchmarkAuthorize): each shard is an
//     atomic pointer to an immutable map, and a change of a binding or of its role stores
//     a new map. A decision with conditions takes budget.mu.
//   - A change of one binding replaces a subject's grant in one atomic step. If the
//     subjects are in several shards, the change takes effect shard by shard.
//   - Conditions are compiled before Policy.mu is acquired, and evaluated without it.
package access

import (
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Permission is a permission in the form SERVICE.RESOURCE.VERB, for example
// messaging.topics.produce. Services are cloud, messaging and schema; verbs are create,
// describe, list, update, delete, produce, consume and manage.
type Permission string

// Scope identifies the resource of a call. Empty fields mean that the call is about a
// larger resource. Permissions are inherited downwards: a permission on a scope applies to
// everything within it.
type Scope struct {
	Organization   string
	Instance       string
	Cluster        string
	Tenant         string
	Namespace      string
	TopicDomain    string
	Topic          string
	Subscription   string
	Subject        string // of the schema registry
	ServiceAccount string
	APIKey         string
}

// Fields of scopes and restrictions.
const (
	fieldOrganization = iota
	fieldInstance
	fieldCluster
	fieldTenant
	fieldNamespace
	fieldTopicDomain
	fieldTopic
	fieldSubscription
	fieldSubject
	fieldServiceAccount
	fieldAPIKey
	fieldSecret // only in restrictions; the server has no secret resources
	fieldCount
)

// fieldNames are the names of fields in printed scopes, fieldVariables those in CEL
// expressions.
var (
	fieldNames = [fieldCount]string{
		"organization", "instance", "cluster", "tenant", "namespace", "domain", "topic",
		"subscription", "subject", "serviceaccount", "apikey", "secret",
	}
	fieldVariables = [fieldCount]string{
		"srn.organization", "srn.instance", "srn.cluster", "srn.tenant", "srn.namespace", "srn.topic_domain",
		"srn.topic_name",
		"srn.subscription", "srn.subject", "srn.service_account", "srn.api_key", "srn.secret",
	}
)

func (s *Scope) field(i int) string {
	switch i {
	case fieldOrganization:
		return s.Organization
	case fieldInstance:
		return s.Instance
	case fieldCluster:
		return s.Cluster
	case fieldTenant:
		return s.Tenant
	case fieldNamespace:
		return s.Namespace
	case fieldTopicDomain:
		return s.TopicDomain
	case fieldTopic:
		return s.Topic
	case fieldSubscription:
		return s.Subscription
	case fieldSubject:
		return s.Subject
	case fieldServiceAccount:
		return s.ServiceAccount
	case fieldAPIKey:
		return s.APIKey
	}
	return ""
}

// String returns the scope as a path, such as organization/acme/instance/prod.
func (s Scope) String() string {
	var b strings.Builder
	for i := range fieldCount {
		if value := s.field(i); value != "" {
			if b.Len() > 0 {
				b.WriteByte('/')
			}
			b.WriteString(fieldNames[i])
			b.WriteByte('/')
			b.WriteString(value)
		}
	}
	if b.Len() == 0 {
		return "every organization"
	}
	return b.String()
}

// Decision is the result of a check, for the audit record.
type Decision struct {
	Allowed bool
	By      By
	Role    string // of the binding that allowed the call
	Binding string
}

// By is the reason why a call was allowed; it is empty for a denial.
type By string

// Reasons why a call is allowed.
const (
	BySystem  By = "system administrator"
	ByAdmin   By = "organization administrator"
	BySelf    By = "own account"
	ByBinding By = "role binding"
	ByCluster By = "cluster permission" // the cluster itself grants it
)

// ErrDenied matches every Denial.
var ErrDenied = errs.New(errs.Denied, "permission denied")

// Denial is the error for a call that is not allowed.
type Denial struct {
	Principal  string
	Permission Permission
	Scope      Scope
	Reason     string // the cause, if it is not only the missing permission
}

// Error returns the principal, the missing permission and the scope.
func (d *Denial) Error() string {
	text := d.Principal + " lacks permission " + string(d.Permission) + " on " + d.Scope.String()
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// Unwrap makes the error an ErrDenied, of kind Denied.
func (d *Denial) Unwrap() error { return ErrDenied }

func newDenial(p *identity.Principal, perm Permission, scope *Scope, reason string) error {
	return &Denial{Principal: p.Name, Permission: perm, Scope: *scope, Reason: reason}
}
