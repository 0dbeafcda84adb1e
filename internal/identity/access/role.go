package access

import (
	"strings"
)

// Level is the type of resource for which a role is intended.
type Level string

// Levels of the predefined roles.
const (
	LevelOrganization Level = "organization"
	LevelInstance     Level = "instance"
	LevelCluster      Level = "cluster"
	LevelTenant       Level = "tenant"
	LevelNamespace    Level = "namespace"
	LevelTopic        Level = "topic"
	LevelSubject      Level = "subject"
)

// Role is a named set of permissions: a predefined role, or a role of an organization
// (customrole.go), which has no level. It is immutable.
type Role struct {
	Name        string
	Level       Level
	Description string
	set         permissionSet
}

// Patterns that several roles share. A pattern is SERVICE.RESOURCE.VERB, in which *
// matches any part and | separates alternatives. A leading - removes permissions.
const (
	readCloud     = "cloud.*.describe|list -cloud.credentials.* -cloud.auditrecords.* -cloud.billing.*"
	readInstance  = "cloud.messaginginstances|messagingclusters.describe|list cloud.pools|poolmembers.describe|list"
	readCluster   = "cloud.messagingclusters.describe|list"
	readMessaging = "messaging.*.describe|list schema.*.describe|list"
	// manage only for subscriptions, because on other resources it allows granting access
	operate      = "messaging.*.update messaging.subscriptions.manage schema.*.update"
	allMessaging = "messaging.*.* schema.*.*"
	inTenant     = "messaging.namespaces|topics|subscriptions|schemas.* schema.subjects.*"
	inNamespace  = "messaging.topics|subscriptions|schemas.* schema.subjects.*"
	metrics      = "cloud.metrics.describe"

	produces = "messaging.topics.describe|list|produce messaging.schemas.describe|list"
	consumes = "messaging.topics.describe|list|consume " +
		"messaging.subscriptions.create|describe|list messaging.schemas.describe|list"
	writesSubjects = "schema.subjects.describe|list|create"
	readsSubjects  = "schema.subjects.describe|list"
)

// roleTable contains the predefined roles (docs/spec/resources.md#roles). An owner may do
// everything on its level and below. An operator may read and change settings, but not
// create, delete, produce or consume. A readonly role may read.
var roleTable = []struct {
	name        string
	level       Level
	description string
	permissions string
}{
	{
		"org-admin", LevelOrganization, "Everything in the organization.",
		"*.*.*",
	},
	{
		"org-readonly", LevelOrganization,
		"Reads every resource, topic and schema of the organization; no messages, no credentials.",
		readCloud + " " + readMessaging,
	},
	{
		"org-operator", LevelOrganization, "Reads everything and changes settings of instances, clusters, tenants, " +
			"namespaces and topics; no messages, no accounts.",
		readCloud + " " + readMessaging + " " + operate + " cloud.messaginginstances|messagingclusters.update",
	},
	{
		"account-admin", LevelOrganization,
		"Manages service accounts, API keys, users, roles and role bindings; may hand out only what it has itself.",
		"cloud.serviceaccounts|serviceaccountbindings|users|apikeys|roles|rolebindings." +
			"create|describe|list|update|delete " +
			"cloud.credentials.describe cloud.clusterroles|pools|poolmembers.describe|list",
	},
	{
		"billing-admin", LevelOrganization, "Manages billing, and sees the instances and clusters that are billed.",
		"cloud.billing.* " + readInstance,
	},
	{
		"metrics-viewer", LevelOrganization, "Reads metrics, and sees the instances and clusters they are about.",
		metrics + " " + readInstance,
	},
	{
		"instance-owner", LevelInstance,
		"Everything in an instance, its clusters included; not the creation of instances.",
		readInstance + " cloud.messaginginstances.update|delete cloud.messagingclusters.create|update|delete " +
			metrics + " " + allMessaging,
	},
	{
		"instance-readonly", LevelInstance, "Reads an instance, its clusters, topics and schemas; no messages.",
		readInstance + " " + metrics + " " + readMessaging,
	},
	{
		"instance-operator", LevelInstance, "Reads an instance and changes settings in it; no messages.",
		readInstance + " " + metrics + " " + readMessaging + " " + operate +
			" cloud.messaginginstances|messagingclusters.update",
	},
	{
		"cluster-owner", LevelCluster, "Everything in a cluster; not the creation of clusters.",
		readCluster + " cloud.messagingclusters.update|delete " + metrics + " " + allMessaging,
	},
	{
		"cluster-readonly", LevelCluster, "Reads a cluster, its topics and schemas; no messages.",
		readCluster + " " + metrics + " " + readMessaging,
	},
	{
		"cluster-operator", LevelCluster, "Reads a cluster and changes settings in it; no messages.",
		readCluster + " " + metrics + " " + readMessaging + " " + operate + " cloud.messagingclusters.update",
	},
	{
		"tenant-owner", LevelTenant, "Everything in a tenant, and the tenant itself; not the creation of tenants.",
		"messaging.tenants.describe|list|update|delete|manage " + inTenant,
	},
	{
		"tenant-admin", LevelTenant, "Everything in a tenant, but not its deletion.",
		"messaging.tenants.describe|list|update|manage " + inTenant,
	},
	{
		"tenant-readonly", LevelTenant, "Reads a tenant, its namespaces, topics and schemas; no messages.",
		"messaging.*.describe|list schema.subjects.describe|list",
	},
	{
		"namespace-owner", LevelNamespace,
		"Everything in a namespace, and the namespace itself; not the creation of namespaces.",
		"messaging.namespaces.describe|list|update|delete|manage " + inNamespace,
	},
	{
		"namespace-readonly", LevelNamespace, "Reads a namespace, its topics and schemas; no messages.",
		"messaging.namespaces|topics|subscriptions|schemas.describe|list schema.subjects.describe|list",
	},
	{
		"topic-owner", LevelTopic, "Everything about a topic: its settings, messages, subscriptions and schemas.",
		"messaging.topics|subscriptions|schemas.*",
	},
	{
		"topic-producer", LevelTopic, "Produces to a topic.",
		produces,
	},
	{
		"topic-consumer", LevelTopic, "Consumes from a topic, with subscriptions of its own.",
		consumes,
	},
	{
		"producer", LevelTopic, "Produces to a topic with serializers that register schemas: topic-producer and " +
			"schema-writer.",
		produces + " " + writesSubjects,
	},
	{
		"consumer", LevelTopic, "Consumes from a topic with deserializers: topic-consumer and schema-reader.",
		consumes + " " + readsSubjects,
	},
	{
		"schema-owner", LevelSubject, "Everything about a subject: registers, configures and deletes.",
		"schema.subjects.*",
	},
	{
		"schema-manager", LevelSubject, "Reads a subject and sets its compatibility level.",
		"schema.subjects.describe|list|update",
	},
	{
		"schema-writer", LevelSubject, "Registers schemas under a subject, and reads it; what a producer needs.",
		writesSubjects,
	},
	{
		"schema-reader", LevelSubject, "Reads a subject; what a consumer needs.",
		readsSubjects,
	},
}

// laterRoles are predefined roles that were added when organizations could already have roles of their own. An
// organization may use these names, because it may have a role and bindings with such a name. The kind in a
// binding distinguishes the two.
var laterRoles = map[string]bool{"producer": true, "consumer": true}

// legacyRoles maps legacy names to predefined roles. Existing tools use the legacy names
// in bindings, with kind Role.
var legacyRoles = map[string]string{
	"admin":        "org-admin",
	"read-only":    "org-readonly",
	"tenant-admin": "tenant-admin",
}

var roles, roleIndex = buildRoles()

func buildRoles() ([]*Role, map[string]*Role) {
	list := make([]*Role, 0, len(roleTable))
	index := make(map[string]*Role, len(roleTable))
	for _, row := range roleTable {
		role := &Role{Name: row.name, Level: row.level, Description: row.description}
		for pattern := range strings.FieldsSeq(row.permissions) {
			pattern, without := strings.CutPrefix(pattern, "-")
			set := matchPermissions(pattern)
			for i := range permissions {
				switch {
				case !set.has(i):
				case without:
					role.set.drop(i)
				default:
					role.set.add(i)
				}
			}
		}
		list = append(list, role)
		index[row.name] = role
	}
	return list, index
}

// Roles returns the predefined roles, from the organization level down. Callers must not
// change the slice.
func Roles() []*Role { return roles }

// SmallestRole returns the predefined role with the fewest permissions that contains p, for hints in
// errors; ok is false if p does not exist.
func SmallestRole(p Permission) (smallest *Role, ok bool) {
	i, ok := permissionIndex[p]
	if !ok {
		return nil, false
	}
	for _, role := range roles {
		if role.set.has(i) && (smallest == nil || len(role.Permissions()) < len(smallest.Permissions())) {
			smallest = role
		}
	}
	return smallest, smallest != nil
}

// FindRole returns the predefined role of a binding's roleRef: by its name with kind
// ClusterRole, or by its legacy name with kind Role.
func FindRole(kind, name string) (*Role, bool) {
	switch kind {
	case "ClusterRole":
	case kindRole:
		legacy, ok := legacyRoles[name]
		if !ok {
			return nil, false
		}
		name = legacy
	default:
		return nil, false
	}
	role, ok := roleIndex[name]
	return role, ok
}

// Permissions returns the permissions of the role.
func (r *Role) Permissions() []Permission {
	var out []Permission
	for i, p := range permissions {
		if r.set.has(i) {
			out = append(out, p)
		}
	}
	return out
}
