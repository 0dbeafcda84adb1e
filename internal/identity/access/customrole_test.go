package access_test

import (
	"errors"
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

// gives is a binding to a role of the organization.
func gives(name, role, account string, where *access.Restriction) access.Binding {
	b := binding(account, role, where)
	b.Name, b.RoleKind = name, "Role"
	return b
}

func TestCustomRolesAreInForceAtOnce(t *testing.T) {
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
	if err := p.SetBinding(gives("b", "shop", "ci", nil)); !errors.As(err, &missing) ||
		missing.Field != "spec.roleRef.name" {
		t.Errorf("a binding to no role: %v, want a FieldError of spec.roleRef.name", err)
	}
	expect("without the role", false, false)
	p.SetRole(custom("shop", 5, produce))
	expect("when the role came", true, false)
	p.SetRole(custom("shop", 7, consume, "no.such.permission"))
	expect("when the role changed", false, true)
	p.SetRole(custom("shop", 6, produce))
	expect("after late news of the role", false, true)
	must(t, p.SetBinding(gives("b", "shop", "ci", nil)))
	expect("after the binding was told again", false, true)
	p.DeleteRole(everything.Organization, "shop", 8)
	expect("when the role went", false, false)
	p.SetRole(custom("shop", 7, consume))
	expect("after late news of a role that went", false, false)
	p.SetRole(custom("shop", 9, produce))
	expect("when it came back", true, false)
	other := custom("shop", 10, consume)
	other.Organization = "other"
	p.SetRole(other)
	expect("with another organization's role of the name", true, false)
	p.DeleteBinding(everything.Organization, "b", 0)
	p.SetRole(custom("shop", 11, consume))
	expect("when the binding went", false, false)
	if n := p.CountRoles(everything.Organization); n != 1 {
		t.Errorf("the organization has %d roles, want 1", n)
	}
}

func TestBindingThatChangesItsRole(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	p.SetRole(custom("one", 1, produce))
	p.SetRole(custom("two", 1, consume))
	must(t, p.SetBinding(gives("b", "one", "ci", nil)))
	must(t, p.SetBinding(gives("b", "two", "ci", nil)))
	p.SetRole(custom("one", 2, produce, "messaging.topics.delete"))
	if allowed(t, p, account("ci"), produce, everything) || !allowed(t, p, account("ci"), consume, everything) {
		t.Error("the binding gives the role that it gave before")
	}
	must(t, p.SetBinding(binding("ci", "topic-producer", nil)))
	p.DeleteRole(everything.Organization, "two", 3)
	if !allowed(t, p, account("ci"), produce, everything) {
		t.Error("a binding to a predefined role is gone with another role")
	}
}

func TestNobodyDefinesWhatTheyDoNotHave(t *testing.T) {
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
		"an administrator":             {boss, access.Permissions(), true},
		"another's administrator":      {foreign, []access.Permission{produce}, false},
		"nobody":                       {nil, []access.Permission{produce}, false},
		"who has it":                   {account("whole"), []access.Permission{produce}, true},
		"who has some of it":           {account("whole"), []access.Permission{produce, consume}, false},
		"who has it in places":         {account("part"), []access.Permission{produce}, false},
		"who has it on condition":      {account("condition"), []access.Permission{produce}, false},
		"who has nothing":              {account("none"), []access.Permission{produce}, false},
		"who has nothing, of nothing":  {account("none"), nil, true},
		"a permission that is unknown": {account("none"), []access.Permission{"no.such.thing"}, true},
	} {
		if err := p.MayDefine(tc.who, custom("r", 1, tc.permissions...)); (err == nil) != tc.want {
			t.Errorf("%s: %v, want allowed %v", name, err, tc.want)
		}
	}
	// Giving a role needs what is in it, over what the binding reaches.
	p.SetRole(custom("r", 1, produce))
	for name, tc := range map[string]struct {
		who   string
		role  string
		where *access.Restriction
		want  bool
	}{
		"who has it":                  {"whole", "r", nil, true},
		"who has it in places":        {"part", "r", nil, false},
		"who has it there":            {"part", "r", &access.Restriction{Topic: "orders-1"}, true},
		"who has nothing":             {"none", "r", nil, false},
		"a role that is not there":    {"whole", "absent", nil, false},
		"a predefined one by no name": {"whole", "org-admin", nil, false},
	} {
		if err := p.MayGrant(account(tc.who), gives("b", tc.role, "victim", tc.where)); (err == nil) != tc.want {
			t.Errorf("giving, %s: %v, want allowed %v", name, err, tc.want)
		}
	}
	// Whoever has the role has its permissions, to hand on as well.
	must(t, p.SetBinding(gives("b", "r", "heir", nil)))
	must(t, p.MayDefine(account("heir"), custom("r2", 1, produce)))
	must(t, p.MayActAs(account("heir"), everything.Organization, "whole2", false))
	if p.MayActAs(account("none"), everything.Organization, "heir", false) == nil {
		t.Error("who has nothing may act as one who has a custom role")
	}
	if access.Reserved("r") || !access.Reserved("org-admin") || !access.Reserved("admin") ||
		!access.Reserved("read-only") {
		t.Error("names of predefined roles are not reserved")
	}
	p.DeleteRole(everything.Organization, "r", 2)
	if p.MayDefine(account("heir"), custom("r2", 1, produce)) == nil {
		t.Error("a role that is gone is still handed on")
	}
}
