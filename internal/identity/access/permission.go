package access

import (
	"slices"
	"strings"
)

// Permissions that callers name in code.
const (
	// ReadCredentials lets a caller see status.privateKeyData of service
	// accounts. It is apart from reading accounts: who may look at an
	// administrator's account must not thereby become it, and who holds a key of
	// an account must not thereby keep it for ever.
	ReadCredentials Permission = "cloud.credentials.describe"
	// ReadAudit lets a caller read audit records of the organization.
	ReadAudit Permission = "cloud.auditrecords.list"
	// ReadMetrics lets a caller read the metrics of the organization.
	ReadMetrics Permission = "cloud.metrics.describe"
)

// group is a set of permissions: one resource and its verbs.
type group struct {
	service  string
	resource string
	verbs    string
}

// catalogue lists every permission there is. What is not in it no role has.
var catalogue = []group{
	// The resource API: one per kind. manage is writing the status.
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
	// Data planes. manage is granting access and other administration.
	{"messaging", "tenants", "create describe list update delete manage"},
	{"messaging", "namespaces", "create describe list update delete manage"},
	{"messaging", "topics", "create describe list update delete manage produce consume"},
	{"messaging", "subscriptions", "create describe list update delete manage"},
	{"messaging", "schemas", "create describe list update delete manage"},
	// The schema registry: describe reads, create registers, update configures.
	{"schema", "subjects", "create describe list update delete"},
	{"schema", "mode", "update"},
}

// permissionSet is a set of the permissions of the catalogue.
type permissionSet [3]uint64

func (s *permissionSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *permissionSet) drop(i int)     { s[i/64] &^= 1 << (i % 64) }
func (s *permissionSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// permissions and permissionIndex are the catalogue, spelt out.
var permissions, permissionIndex = spellOut(catalogue)

func spellOut(groups []group) ([]Permission, map[Permission]int) {
	var list []Permission
	index := make(map[Permission]int)
	for _, g := range groups {
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

// Permissions lists every permission there is.
func Permissions() []Permission { return slices.Clone(permissions) }

// Known reports whether p is in the catalogue.
func (p Permission) Known() bool {
	_, ok := permissionIndex[p]
	return ok
}

// ForVerb is the permission that a call of the resource API needs: the verb of
// the machinery (get, list, watch, create, update, patch, delete,
// deletecollection) on a resource or subresource. Other verbs, impersonation
// among them, have none, and the call must be refused.
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
		return "cloud.apikeys.create", true // a token is a key with a short life
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

// match expands a pattern of the role table, where * stands for one whole part.
func match(pattern string) permissionSet {
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
		panic("access: pattern " + pattern + " of the role table matches nothing")
	}
	return set
}
