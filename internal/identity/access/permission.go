package access

import (
	"slices"
	"strings"
)

// Permissions that other packages use.
const (
	// ReadCredentials allows reading status.privateKeyData of service accounts. It is
	// separate from reading accounts: a reader of an administrator's account must not be
	// able to act as it, and an API key with an expiry must not give access to
	// credentials without one.
	ReadCredentials Permission = "cloud.credentials.describe"
	// ReadAudit allows reading the audit records of the organization.
	ReadAudit Permission = "cloud.auditrecords.list"
	// ReadMetrics allows reading the metrics of the organization.
	ReadMetrics Permission = "cloud.metrics.describe"
)

// resourcePermissions is the permissions of one resource: one for each verb.
type resourcePermissions struct {
	service  string
	resource string
	verbs    string
}

// catalogue contains every permission.
var catalogue = []resourcePermissions{
	// The resource API: one entry per kind. manage allows writing the status.
	{"cloud", "serviceaccounts", "create describe list update delete manage"},
	{"cloud", "serviceaccountbindings", "create describe list update delete manage"},
	{"cloud", "users", "create describe list update delete manage"},
	{"cloud", "apikeys", "create describe list update delete manage"},
	{"cloud", "rolebindings", "create describe list update delete manage"},
	{"cloud", "roles", "create describe list update delete manage"},
	{"cloud", "messaginginstances", "create describe list update delete manage"},
	{"cloud", "messagingclusters", "create describe list update delete manage"},
	{"cloud", "clusterroles", "describe list"},
	{"cloud", "pools", "describe list"},
	{"cloud", "poolmembers", "describe list"},
	{"cloud", "credentials", "describe"},
	{"cloud", "auditrecords", "list"},
	{"cloud", "metrics", "describe"},
	{"cloud", "billing", "describe list update"},
	// Data planes. manage allows granting access and other administration.
	{"messaging", "tenants", "create describe list update delete manage"},
	{"messaging", "namespaces", "create describe list update delete manage"},
	{"messaging", "topics", "create describe list update delete manage produce consume"},
	{"messaging", "subscriptions", "create describe list update delete manage"},
	{"messaging", "schemas", "create describe list update delete manage"},
	// The schema registry. describe allows reading, create registering, update configuring.
	{"schema", "subjects", "create describe list update delete"},
	{"schema", "mode", "update"},
}

// permissionSet is a bit set of the permissions of the catalogue.
type permissionSet [3]uint64

func (s *permissionSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *permissionSet) drop(i int)     { s[i/64] &^= 1 << (i % 64) }
func (s *permissionSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// permissions is the catalogue as a list, permissionIndex maps a permission to its index.
var permissions, permissionIndex = expandCatalogue(catalogue)

func expandCatalogue(resources []resourcePermissions) ([]Permission, map[Permission]int) {
	var list []Permission
	index := make(map[Permission]int)
	for _, g := range resources {
		for verb := range strings.FieldsSeq(g.verbs) {
			p := Permission(g.service + "." + g.resource + "." + verb)
			index[p] = len(list)
			list = append(list, p)
		}
	}
	if len(list) > len(permissionSet{})*64 {
		panic("access: permissionSet is too small for the catalogue")
	}
	return list, index
}

// Permissions returns all permissions.
func Permissions() []Permission { return slices.Clone(permissions) }

// Known reports whether p is in the catalogue.
func (p Permission) Known() bool {
	_, ok := permissionIndex[p]
	return ok
}

// ForVerb returns the permission for a call of the resource API: a Kubernetes verb (get,
// list, watch, create, update, patch, delete, deletecollection) on a resource or
// subresource. It returns false for other verbs, such as impersonate; the caller must
// reject the call.
func ForVerb(resource, subresource, verb string) (Permission, bool) {
	var v string
	switch verb {
	case "get":
		v = "describe"
	case "list", "watch":
		v = "list"
	case "create":
		v = "create"
	case "update", "patch":
		v = "update"
	case "delete", "deletecollection":
		v = "delete"
	default:
		return "", false
	}
	if resource == "serviceaccounts" && subresource == "token" && verb == "create" {
		return "cloud.apikeys.create", true // a token is an API key with a short lifetime
	}
	if resource == "serviceaccounts" && subresource == "rotate" && verb == "create" {
		return "cloud.serviceaccounts.update", true
	}
	if resource == "users" && subresource == "invite" && verb == "create" {
		return "cloud.users.update", true
	}
	if subresource != "" && v != "describe" && v != "list" {
		v = "manage"
	}
	return Permission("cloud." + resource + "." + v), true
}

// matchPermissions returns the permissions that match a pattern of the role table, in which * matches
// one part.
func matchPermissions(pattern string) permissionSet {
	var set permissionSet
	want := strings.Split(pattern, ".")
	matched := false
	for i, p := range permissions {
		parts := strings.Split(string(p), ".")
		same := len(want) == len(parts)
		for j := 0; same && j < len(parts); j++ {
			same = want[j] == "*" || slices.Contains(strings.Split(want[j], "|"), parts[j])
		}
		if same {
			set.add(i)
			matched = true
		}
	}
	if !matched {
		panic("access: pattern " + pattern + " of the role table matches no permission")
	}
	return set
}
