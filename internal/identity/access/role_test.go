package access_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

// TestRoleMatrix checks every predefined role, bound to an account, against every
// permission with Authorize, and compares the matrix with testdata.
func TestRoleMatrix(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	names := make([]string, 0, len(access.Roles()))
	for i, role := range access.Roles() {
		fmt.Fprintf(&out, "%c  %-19s %s\n", column(i), role.Name, role.Description)
		names = append(names, role.Name)
	}
	fmt.Fprintf(&out, "\n%-38s ", "permission")
	for i := range names {
		out.WriteByte(column(i))
	}
	out.WriteByte('\n')
	policy := access.NewPolicy()
	for _, name := range names {
		must(t, policy.SetBinding(binding(name, name, nil)))
	}
	for _, perm := range access.Permissions() {
		fmt.Fprintf(&out, "%-38s ", perm)
		for i, name := range names {
			_, err := policy.Authorize(context.Background(), account(name), perm, everything)
			if role, _ := access.FindRole("ClusterRole", name); slices.Contains(role.Permissions(),
				perm) != (err == nil) {
				t.Errorf("role %s contains %s: %v, Authorize allows it: %v; want the same", name, perm,
					err != nil, err == nil)
			}
			if err == nil {
				out.WriteByte(column(i))
			} else {
				out.WriteByte('.')
			}
		}
		out.WriteByte('\n')
	}
	golden(t, "roles.txt", out.Bytes())
}

func column(i int) byte { return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and check the difference. Got:\n%s\nWant:\n%s", path, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everything is a scope with all coordinates of a topic and a subject.
var everything = access.Scope{
	Organization: "acme", Instance: "prod", Cluster: "c1", Tenant: "public", Namespace: "default",
	TopicDomain: "persistent", Topic: "orders", Subscription: "s", Subject: "orders-value",
}

func account(name string) *identity.Principal {
	return &identity.Principal{Name: name + "@acme.test", Organization: "acme", ServiceAccount: name}
}

func binding(subject, role string, restriction *access.Restriction) access.Binding {
	return access.Binding{
		Organization: "acme", Name: subject + "-" + role, RoleKind: "ClusterRole", Role: role,
		Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: subject}},
		Restriction: restriction,
	}
}

// TestRoleSanity checks rules that every version of the role table must follow.
func TestRoleSanity(t *testing.T) {
	t.Parallel()
	writes := func(p access.Permission) bool {
		verb := string(p[strings.LastIndexByte(string(p), '.')+1:])
		return verb != "describe" && verb != "list"
	}
	accounts := func(p access.Permission) bool {
		for _, resource := range []string{
			"serviceaccounts", "users", "apikeys", "rolebindings",
			"serviceaccountbindings",
		} {
			if strings.HasPrefix(string(p), "cloud."+resource+".") {
				return true
			}
		}
		return false
	}
	for _, role := range access.Roles() {
		if role.Description == "" || role.Level == "" || len(role.Permissions()) == 0 {
			t.Errorf("role %s: description %q, level %q, %d permissions; want none empty", role.Name, role.Description,
				role.Level, len(role.Permissions()))
		}
		for _, p := range role.Permissions() {
			wide := role.Name == "org-admin"
			switch {
			case strings.HasSuffix(role.Name, "-readonly") && writes(p):
				t.Errorf("%s may %s", role.Name, p)
			case strings.HasSuffix(role.Name, "-operator") &&
				slices.Contains([]access.Permission{"messaging.topics.produce", "messaging.topics.consume"}, p):
				t.Errorf("%s may %s", role.Name, p)
			case strings.HasSuffix(role.Name, "-operator") && strings.HasSuffix(string(p), ".manage") &&
				p != "messaging.subscriptions.manage":
				t.Errorf("%s may %s, so it could grant itself access to messages", role.Name, p)
			case accounts(p) && writes(p) && !wide && role.Name != "account-admin":
				t.Errorf("%s may %s, but only org-admin and account-admin manage accounts and bindings", role.Name, p)
			case p == access.ReadCredentials && !wide && role.Name != "account-admin":
				t.Errorf("%s may read credentials", role.Name)
			case p == access.ReadAudit && !wide:
				t.Errorf("%s may read audit records", role.Name)
			case strings.HasSuffix(string(p), ".manage") && strings.HasPrefix(string(p), "cloud.") && !wide:
				t.Errorf("%s may write status", role.Name)
			case strings.HasPrefix(string(p), "cloud.") &&
				(role.Level == access.LevelTenant || role.Level == access.LevelTopic ||
					role.Level == access.LevelSubject || role.Level == access.LevelNamespace):
				t.Errorf("%s may %s, which is above its level", role.Name, p)
			case role.Level == access.LevelSubject && !strings.HasPrefix(string(p), "schema."):
				t.Errorf("%s may %s", role.Name, p)
			case p == "messaging.tenants.create" && role.Level == access.LevelTenant:
				t.Errorf("%s may create tenants", role.Name)
			}
		}
	}
	if n := len(access.Permissions()); n != len(slices.Compact(access.Permissions())) {
		t.Errorf("%d permissions, %d distinct; want no duplicates", n, len(slices.Compact(access.Permissions())))
	}
}

func TestFindRole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"org-admin", "org-readonly", "org-operator", "account-admin", "billing-admin", "metrics-viewer",
		"instance-owner", "instance-readonly", "instance-operator", "cluster-owner", "cluster-readonly",
		"cluster-operator",
		"tenant-owner", "tenant-readonly", "tenant-admin", "namespace-owner", "namespace-readonly",
		"topic-owner", "topic-producer", "topic-consumer", "schema-owner", "schema-manager", "schema-writer",
		"schema-reader",
	} {
		if role, ok := access.FindRole("ClusterRole", name); !ok || role.Name != name {
			t.Errorf("FindRole(ClusterRole, %s) = %v, %v; want the role", name, role, ok)
		}
	}
	if role, ok := access.FindRole("Role", "admin"); !ok || role.Name != "org-admin" {
		t.Errorf("FindRole(Role, admin) = %v, %v; want org-admin", role, ok)
	}
	for _, bad := range [][2]string{
		{"ClusterRole", "admin"},
		{"Role", "org-admin"},
		{"", "org-admin"},
		{"ClusterRole", ""},
		{"Role", ""},
	} {
		if _, ok := access.FindRole(bad[0], bad[1]); ok {
			t.Errorf("FindRole%q returns a role, want none", bad)
		}
	}
}

func TestForVerb(t *testing.T) {
	t.Parallel()
	tests := map[[3]string]access.Permission{
		{"apikeys", "", "get"}:              "cloud.apikeys.describe",
		{"apikeys", "", "list"}:             "cloud.apikeys.list",
		{"apikeys", "", "watch"}:            "cloud.apikeys.list",
		{"apikeys", "", "create"}:           "cloud.apikeys.create",
		{"apikeys", "", "update"}:           "cloud.apikeys.update",
		{"apikeys", "", "patch"}:            "cloud.apikeys.update",
		{"apikeys", "", "delete"}:           "cloud.apikeys.delete",
		{"apikeys", "", "deletecollection"}: "cloud.apikeys.delete",
		{"apikeys", "status", "get"}:        "cloud.apikeys.describe",
		{"apikeys", "status", "patch"}:      "cloud.apikeys.manage",
		{"apikeys", "", "impersonate"}:      "",
		{"apikeys", "", "impersonate:user"}: "",
		{"apikeys", "", ""}:                 "",
		{"apikeys", "", "GET"}:              "",
	}
	for in, want := range tests {
		got, ok := access.ForVerb(in[0], in[1], in[2])
		if got != want || ok != (want != "") {
			t.Errorf("ForVerb%q = %q, %v; want %q, %v", in, got, ok, want, want != "")
		}
		if ok && !got.Known() {
			t.Errorf("%s is not in the catalogue", got)
		}
	}
}
