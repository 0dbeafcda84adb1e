package access_test

import (
	"errors"
	"slices"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

const (
	produce access.Permission = "messaging.topics.produce"
	consume access.Permission = "messaging.topics.consume"
)

func custom(name string, revision int64, permissions ...access.Permission) access.CustomRole {
	return access.CustomRole{
		Organization: everything.Organization, Name: name, Permissions: permissions,
		Revision: revision,
	}
}

// roleBindingTo returns a binding to a role of the organization.
func roleBindingTo(name, role, account string, where *access.Restriction) access.Binding {
	b := binding(account, role, where)
	b.Name, b.RoleKind = name, "Role"
	return b
}

// TestRoleNamesOfOrganizations checks that an organization's own role with the name of a later predefined role, and
// bindings to both, have the effect of their own kind, as the data of an earlier version requires.
func TestRoleNamesOfOrganizations(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	p.SetRole(custom("producer", 1, consume))
	must(t, p.SetBinding(roleBindingTo("own", "producer", "old", nil)))
	must(t, p.SetBinding(binding("new", "producer", nil)))
	for name, produces := range map[string]bool{"old": false, "new": true} {
		if got := allowed(t, p, account(name), produce, everything); got != produces {
			t.Errorf("account %s may produce: got %v, want %v", name, got, produces)
		}
		if got := allowed(t, p, account(name), consume, everything); got == produces {
			t.Errorf("account %s may consume: got %v, want %v", name, got, !produces)
		}
	}
	for _, name := range []string{"producer", "consumer"} {
		if access.Reserved(name) {
			t.Errorf("%s is reserved, want organizations to keep their roles of that name", name)
		}
	}
}

// TestRolesWithSchemas checks that the roles for clients with serializers contain those for messages and for schemas.
func TestRolesWithSchemas(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{
		"producer": {"topic-producer", "schema-writer"}, "consumer": {"topic-consumer", "schema-reader"},
	} {
		role, ok := access.FindRole("ClusterRole", name)
		if !ok {
			t.Fatalf("role %s does not exist", name)
		}
		var want []access.Permission
		for _, part := range parts {
			r, _ := access.FindRole("ClusterRole", part)
			want = append(want, r.Permissions()...)
		}
		got := role.Permissions()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("role %s: got %v, want %v", name, got, want)
		}
	}
	for permission, want := range map[access.Permission]string{
		"schema.subjects.describe": "schema-reader", "schema.subjects.create": "schema-writer",
		"schema.mode.update": "cluster-operator",
	} {
		if role, ok := access.SmallestRole(permission); !ok || role.Name != want {
			t.Errorf("smallest role with %s: got %+v, want %s", permission, role, want)
		}
	}
	if role, ok := access.SmallestRole("no.such.permission"); ok {
		t.Errorf("role of an unknown permission: got %s, want none", role.Name)
	}
}

func TestCustomRolesAreInForceImmediately(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	may := func(permission access.Permission) bool { return allowed(t, p, account("ci"), permission, everything) }
	expect := func(step string, produces, consumes bool) {
		t.Helper()
		if may(produce) != produces || may(consume) != consumes {
			t.Errorf("%s: may produce %v, consume %v; want %v, %v", step, may(produce), may(consume),
				produces, consumes)
		}
	}
	var missing *access.FieldError
	if err := p.SetBinding(roleBindingTo("b", "shop", "ci", nil)); !errors.As(err, &missing) ||
		missing.Field != "spec.roleRef.name" {
		t.Errorf("binding to a missing role: %v, want a FieldError of spec.roleRef.name", err)
	}
	expect("without the role", false, false)
	p.SetRole(custom("shop", 5, produce))
	expect("after the role was created", true, false)
	p.SetRole(custom("shop", 7, consume, "no.such.permission"))
	expect("after the role changed", false, true)
	p.SetRole(custom("shop", 6, produce))
	expect("after a late report of the role", false, true)
	must(t, p.SetBinding(roleBindingTo("b", "shop", "ci", nil)))
	expect("after the binding was reported again", false, true)
	p.DeleteRole(everything.Organization, "shop", 8)
	expect("after the role was deleted", false, false)
	p.SetRole(custom("shop", 7, consume))
	expect("after a late report of the deleted role", false, false)
	p.SetRole(custom("shop", 9, produce))
	expect("after the role was created again", true, false)
	other := custom("shop", 10, consume)
	other.Organization = "other"
	p.SetRole(other)
	expect("with a role of the same name in another organization", true, false)
	p.DeleteBinding(everything.Organization, "b", 0)
	p.SetRole(custom("shop", 11, consume))
	expect("after the binding was deleted", false, false)
	if n := p.CountRoles(everything.Organization); n != 1 {
		t.Errorf("organization has %d roles, want 1", n)
	}
}

func TestBindingThatChangesItsRole(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	p.SetRole(custom("one", 1, produce))
	p.SetRole(custom("two", 1, consume))
	must(t, p.SetBinding(roleBindingTo("b", "one", "ci", nil)))
	must(t, p.SetBinding(roleBindingTo("b", "two", "ci", nil)))
	p.SetRole(custom("one", 2, produce, "messaging.topics.delete"))
	if allowed(t, p, account("ci"), produce, everything) || !allowed(t, p, account("ci"), consume, everything) {
		t.Error("binding still gives its previous role")
	}
	must(t, p.SetBinding(binding("ci", "topic-producer", nil)))
	p.DeleteRole(everything.Organization, "two", 3)
	if !allowed(t, p, account("ci"), produce, everything) {
		t.Error("binding to a predefined role grants nothing after another role was deleted")
	}
}

func TestMayDefineOnlyOwnPermissions(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	must(t, p.SetBinding(binding("whole", "topic-producer", nil)))
	must(t, p.SetBinding(binding("part", "topic-producer", &access.Restriction{Topic: "orders-*"})))
	condition := binding("condition", "topic-producer", nil)
	condition.CEL = "true"
	must(t, p.SetBinding(condition))
	boss := &identity.Principal{
		Name: "boss", Organization: everything.Organization,
		ServiceAccount: "boss", Admin: true,
	}
	foreign := &identity.Principal{Name: "boss", Organization: "other", ServiceAccount: "boss", Admin: true}
	for name, tc := range map[string]struct {
		who         *identity.Principal
		permissions []access.Permission
		want        bool
	}{
		"administrator":                         {boss, access.Permissions(), true},
		"administrator elsewhere":               {foreign, []access.Permission{produce}, false},
		"no principal":                          {nil, []access.Permission{produce}, false},
		"has the permission":                    {account("whole"), []access.Permission{produce}, true},
		"has one of two permissions":            {account("whole"), []access.Permission{produce, consume}, false},
		"has it on some resources":              {account("part"), []access.Permission{produce}, false},
		"has it on a condition":                 {account("condition"), []access.Permission{produce}, false},
		"has no permission":                     {account("none"), []access.Permission{produce}, false},
		"has no permission, for a role of none": {account("none"), nil, true},
		"unknown permission":                    {account("none"), []access.Permission{"no.such.thing"}, true},
	} {
		if err := p.MayDefine(tc.who, custom("r", 1, tc.permissions...)); (err == nil) != tc.want {
			t.Errorf("%s: %v, want allowed %v", name, err, tc.want)
		}
	}
	// A binding to a role requires its permissions on the resources of the binding.
	p.SetRole(custom("r", 1, produce))
	for name, tc := range map[string]struct {
		who   string
		role  string
		where *access.Restriction
		want  bool
	}{
		"has the permission":             {"whole", "r", nil, true},
		"has it on some resources":       {"part", "r", nil, false},
		"has it on the resource":         {"part", "r", &access.Restriction{Topic: "orders-1"}, true},
		"has no permission":              {"none", "r", nil, false},
		"missing role":                   {"whole", "absent", nil, false},
		"predefined role with kind Role": {"whole", "org-admin", nil, false},
	} {
		err := p.MayGrant(account(tc.who), roleBindingTo("b", tc.role, "victim", tc.where))
		if (err == nil) != tc.want {
			t.Errorf("MayGrant, %s: %v, want allowed %v", name, err, tc.want)
		}
	}
	// A subject of the role has its permissions, and can grant them.
	must(t, p.SetBinding(roleBindingTo("b", "r", "heir", nil)))
	must(t, p.MayDefine(account("heir"), custom("r2", 1, produce)))
	must(t, p.MayActAs(account("heir"), everything.Organization, "whole2", false))
	if p.MayActAs(account("none"), everything.Organization, "heir", false) == nil {
		t.Error("account without permissions may act as an account with a custom role")
	}
	if access.Reserved("r") || !access.Reserved("org-admin") || !access.Reserved("admin") ||
		!access.Reserved("read-only") {
		t.Error("names of predefined roles are not reserved")
	}
	p.DeleteRole(everything.Organization, "r", 2)
	if p.MayDefine(account("heir"), custom("r2", 1, produce)) == nil {
		t.Error("permissions of a deleted role can still be granted")
	}
}
