// Package access answers one question: may this principal do this to that?
//
// It owns permissions, predefined roles and those of organizations, bindings and
// their restrictions, all held in memory. It does not know who is calling (that is identity), does not
// read resources itself (controllers feed it) and does not speak HTTP.
//
// Three things can allow a call, looked at in this order: being the system
// administrator, being the administrator of the organization in question, and a
// role binding of that organization. Nothing denies; what nothing allows is
// denied.
//
// # Locks
//
// Policy.mu is the only lock: it guards the bindings, the organizations' roles,
// their counts, and every write to the shards. Decisions take no lock
// (BenchmarkAuthorize): each shard is an atomic pointer to a map that is never
// changed, and a change of a binding or of its role stores a new map. A change
// whose subjects fall into several shards is in force shard by shard; for one
// subject and one binding it is one step. Conditions are
// compiled before the lock is taken.
package access

import (
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Permission is what a call needs, in the form SERVICE.RESOURCE.VERB, for
// example messaging.topics.produce. Services are cloud, messaging and schema;
// verbs create, describe, list, update, delete, produce, consume and manage.
type Permission string

// Scope names the thing a permission is wanted on. Empty fields mean the call
// is not about something that small; permissions inherit downwards, so what is
// allowed on a scope is allowed on everything beneath it.
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

// The fields of a scope, and of a restriction on one.
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
	fieldSecret // only restrictions have it: nothing here is a secret resource
	fieldCount
)

// fieldNames are how scopes print; fieldVariables how expressions name them.
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

// String prints the scope as a path, organization/acme/instance/prod.
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

// Decision says what allowed a call, for the audit record.
type Decision struct {
	Allowed bool
	By      By
	Role    string // of the binding, when one allowed
	Binding string
}

// By says what allowed a call; it is empty when nothing did.
type By string

// What can allow a call.
const (
	BySystem  By = "system administrator"
	ByAdmin   By = "organization administrator"
	BySelf    By = "own account"
	ByBinding By = "role binding"
)

// ErrDenied is what every denial is.
var ErrDenied = errs.New(errs.Denied, "permission denied")

// Denial is the error of a call that is not allowed.
type Denial struct {
	Principal  string
	Permission Permission
	Scope      Scope
	Reason     string // more than the missing permission, if there is more
}

// Error names the missing permission and what it was wanted on.
func (d *Denial) Error() string {
	text := d.Principal + " lacks permission " + string(d.Permission) + " on " + d.Scope.String()
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// Unwrap makes the error an ErrDenied, of kind Denied.
func (d *Denial) Unwrap() error { return ErrDenied }

func deny(p *identity.Principal, perm Permission, scope *Scope, reason string) error {
	return &Denial{Principal: p.Name, Permission: perm, Scope: *scope, Reason: reason}
}
