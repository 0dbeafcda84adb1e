package access_test

import (
	"slices"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

func grantPolicy(t testing.TB) *access.Policy {
	t.Helper()
	p := access.NewPolicy()
	must(t, p.SetBinding(binding("accounts", "account-admin", nil)))
	must(t, p.SetBinding(binding("boss", "org-admin", nil)))
	must(t, p.SetBinding(binding("local", "account-admin", nil)))
	must(t, p.SetBinding(binding("local", "instance-owner", &access.Restriction{Instance: "prod"})))
	must(t, p.SetBinding(binding("patterns", "topic-owner", &access.Restriction{Topic: "ord*"})))
	must(t, p.SetBinding(binding("worker", "topic-producer", &access.Restriction{Instance: "prod"})))
	must(t, p.SetBinding(binding("foreign", "topic-producer", &access.Restriction{Instance: "dev"})))
	cel := binding("conditional", "topic-producer", nil)
	cel.CEL = "true"
	must(t, p.SetBinding(cel))
	return p
}

func TestMayGrantOnlyOwnPermissions(t *testing.T) {
	t.Parallel()
	policy := grantPolicy(t)
	admin := &identity.Principal{Name: "admin", Organization: "acme", ServiceAccount: "admin", Admin: true}
	system := &identity.Principal{Name: "root", Organization: "default", System: true}
	in := func(r access.Restriction) *access.Restriction { return &r }
	cel := binding("x", "topic-producer", nil)
	cel.CEL = "srn.instance == 'prod'"
	tuples := binding("x", "topic-producer", nil)
	tuples.ResourceNames = []access.Restriction{{Instance: "prod"}, {Instance: "dev"}}
	inProd := binding("x", "topic-producer", nil)
	inProd.ResourceNames = []access.Restriction{{Instance: "prod", Tenant: "a"}, {Instance: "prod", Tenant: "b"}}
	tests := map[string]struct {
		who  *identity.Principal
		b    access.Binding
		want bool
	}{
		"system":                     {system, binding("x", "org-admin", nil), true},
		"administrator":              {admin, binding("x", "org-admin", nil), true},
		"org-admin":                  {account("boss"), binding("x", "org-admin", nil), true},
		"org-admin with a condition": {account("boss"), cel, true},
		"account-admin its own role": {account("accounts"), binding("x", "account-admin", nil), true},
		"account-admin everything":   {account("accounts"), binding("x", "org-admin", nil), false},
		"account-admin a topic role": {account("accounts"), binding("x", "topic-producer", nil), false},
		"instance owner in the instance": {
			account("local"),
			binding("x", "topic-producer", in(access.Restriction{Instance: "prod"})), true,
		},
		"instance owner deeper": {
			account("local"),
			binding("x", "topic-producer", in(access.Restriction{Instance: "prod", Tenant: "t"})), true,
		},
		"instance owner elsewhere": {
			account("local"),
			binding("x", "topic-producer", in(access.Restriction{Instance: "dev"})), false,
		},
		"instance owner everywhere": {account("local"), binding("x", "topic-producer", nil), false},
		"instance owner, empty restriction": {
			account("local"),
			binding("x", "topic-producer", in(access.Restriction{})), false,
		},
		"instance owner, prefix": {
			account("local"),
			binding("x", "topic-producer", in(access.Restriction{Instance: "prod*"})), false,
		},
		"instance owner, condition":         {account("local"), cel, false},
		"instance owner, one tuple outside": {account("local"), tuples, false},
		"instance owner, all tuples inside": {account("local"), inProd, true},
		"prefix owner, name": {
			account("patterns"),
			binding("x", "topic-producer", in(access.Restriction{Topic: "orders"})), true,
		},
		"prefix owner, longer prefix": {
			account("patterns"),
			binding("x", "topic-producer", in(access.Restriction{Topic: "orders-*"})), true,
		},
		"prefix owner, partitions": {
			account("patterns"),
			binding("x", "topic-producer", in(access.Restriction{Topic: "allPartition('orders')"})), true,
		},
		"prefix owner, shorter prefix": {
			account("patterns"),
			binding("x", "topic-producer", in(access.Restriction{Topic: "or*"})), false,
		},
		"prefix owner, tenant only": {
			account("patterns"),
			binding("x", "topic-producer", in(access.Restriction{Tenant: "t"})), false,
		},
		"the principal has it on a condition": {account("conditional"), binding("x", "topic-producer", nil), false},
		"nobody":                              {account("nobody"), binding("x", "schema-reader", nil), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := policy.MayGrant(tc.who, tc.b)
			if (err == nil) != tc.want {
				t.Errorf("MayGrant = %v, want allowed %v", err, tc.want)
			}
			if err != nil && errs.KindOf(err) != errs.Denied {
				t.Errorf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Denied)
			}
		})
	}
	outside := binding("x", "schema-reader", nil)
	outside.Organization = "other"
	for name, principal := range map[string]*identity.Principal{"administrator": admin, "org-admin": account("boss")} {
		if policy.MayGrant(principal, outside) == nil {
			t.Errorf("%s may grant in another organization", name)
		}
	}
	if err := policy.MayGrant(nil, outside); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("without a principal: kind of %v is %v, want %v", err, errs.KindOf(err), errs.Unauthenticated)
	}
	bound := *admin
	bound.Instance = "prod"
	if policy.MayGrant(&bound, binding("x", "schema-reader", nil)) == nil {
		t.Error("credential of one instance may grant in the organization")
	}
}

// TestGrantingNeverEscalates checks the property of MayGrant: a principal that may grant a role
// has each of its permissions on all resources of the binding.
func TestGrantingNeverEscalates(t *testing.T) {
	t.Parallel()
	policy := grantPolicy(t)
	restrictions := []*access.Restriction{
		nil,
		{Instance: "prod"},
		{Instance: "dev"},
		{Instance: "p*"},
		{Tenant: "public"},
		{Instance: "prod", Topic: "ord*"},
		{Topic: "orders"},
		{Topic: "allPartition('orders')"},
		{Instance: "prod", Tenant: "public"},
	}
	scopes := []access.Scope{everything}
	for _, edit := range []func(*access.Scope){
		func(s *access.Scope) { s.Instance = "dev" },
		func(s *access.Scope) { s.Topic = "orders-partition-3" },
		func(s *access.Scope) { s.Topic = "payments" },
		func(s *access.Scope) { *s = access.Scope{Organization: "acme"} },
		func(s *access.Scope) { *s = access.Scope{Organization: "acme", Instance: "prod"} },
	} {
		s := everything
		edit(&s)
		scopes = append(scopes, s)
	}
	granted := 0
	for _, name := range []string{"accounts", "boss", "local", "patterns", "worker", "conditional"} {
		for _, role := range access.Roles() {
			for _, r := range restrictions {
				b := binding("fresh", role.Name, r)
				if policy.MayGrant(account(name), b) != nil {
					continue
				}
				granted++
				after := access.NewPolicy()
				must(t, after.SetBinding(b))
				for _, perm := range access.Permissions() {
					for _, scope := range scopes {
						if allowed(t, after, account("fresh"), perm, scope) &&
							!allowed(t, policy, account(name), perm, scope) {
							t.Fatalf("%s may grant %s on %v, but lacks %s on %v", name, role.Name,
								r, perm, scope)
						}
					}
				}
			}
		}
	}
	if granted < 50 {
		t.Errorf("%d grants were tried, want at least 50", granted)
	}
}

func TestMayActAs(t *testing.T) {
	t.Parallel()
	policy := grantPolicy(t)
	admin := &identity.Principal{Name: "admin", Organization: "acme", ServiceAccount: "admin", Admin: true}
	tests := map[string]struct {
		who     *identity.Principal
		account string
		admin   bool
		want    bool
	}{
		"administrator as administrator":      {admin, "root", true, true},
		"org-admin as administrator":          {account("boss"), "root", true, true},
		"account-admin as administrator":      {account("accounts"), "root", true, false},
		"account-admin as a plain account":    {account("accounts"), "fresh", false, true},
		"account-admin as a producer":         {account("accounts"), "worker", false, false},
		"instance owner as its producer":      {account("local"), "worker", false, true},
		"instance owner as another's":         {account("local"), "foreign", false, false},
		"oneself":                             {account("worker"), "worker", false, true},
		"oneself as administrator of oneself": {account("root"), "root", true, true},
		"another organization's": {&identity.Principal{
			Name: "x", Organization: "other",
			ServiceAccount: "fresh", Admin: true,
		}, "fresh", false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := policy.MayActAs(tc.who, "acme", tc.account, tc.admin); (err == nil) != tc.want {
				t.Errorf("MayActAs = %v, want allowed %v", err, tc.want)
			}
		})
	}
	for _, tc := range []struct {
		who          *identity.Principal
		organization string
		want         bool
	}{{account("accounts"), "acme", false}, {account("boss"), "acme", true}, {admin, "other", false}} {
		if err := policy.MayCreateAdmin(tc.who, tc.organization); (err == nil) != tc.want {
			t.Errorf("MayCreateAdmin(%s, %s) = %v, want allowed %v", tc.who.Name, tc.organization, err, tc.want)
		}
	}
}

func TestRulesListOwnPermissions(t *testing.T) {
	t.Parallel()
	policy := grantPolicy(t)
	org := access.Scope{Organization: "acme"}
	rules := policy.Rules(account("local"), org)
	if len(rules) != 3 {
		t.Fatalf("rules = %+v, want 3", rules)
	}
	var owner access.Rule
	for _, r := range rules {
		if r.Role == "instance-owner" {
			owner = r
		}
	}
	if owner.Binding != "local-instance-owner" || len(owner.Restrictions) != 1 ||
		owner.Restrictions[0].Instance != "prod" || !slices.Contains(owner.Permissions, "messaging.topics.produce") {
		t.Errorf("rule = %+v, want that of local-instance-owner in instance prod", owner)
	}
	if got := policy.Rules(account("local"), access.Scope{Organization: "acme", Instance: "dev"}); len(got) != 2 {
		t.Errorf("in another instance: %+v, want 2 rules", got)
	}
	if got := policy.Rules(account("conditional"), org); len(got) != 2 || got[0].CEL != "true" {
		t.Errorf("condition: %+v, want 2 rules, the first with CEL true", got)
	}
	system := &identity.Principal{System: true}
	if got := policy.Rules(system, access.Scope{}); len(got) != 1 ||
		len(got[0].Permissions) != len(access.Permissions()) || got[0].By != access.BySystem {
		t.Errorf("system: %+v, want one rule with every permission", got)
	}
	bound := &identity.Principal{Organization: "acme", Admin: true, Instance: "prod", ServiceAccount: "x"}
	if got := policy.Rules(bound, org); len(got) != 1 || got[0].Restrictions[0].Instance != "prod" {
		t.Errorf("bound administrator: %+v, want one rule in instance prod", got)
	}
	if got := policy.Rules(account("local"), access.Scope{Organization: "other"}); got != nil {
		t.Errorf("in another organization: %+v, want none", got)
	}
	if got := policy.Rules(nil, org); got != nil {
		t.Errorf("without a principal: %+v, want none", got)
	}
}

// TestMayActAsUser checks that only a principal with all permissions of a user may control
// the user's sign-in.
func TestMayActAsUser(t *testing.T) {
	t.Parallel()
	policy := grantPolicy(t)
	ofUser := binding("u", "org-readonly", nil)
	ofUser.Subjects = []access.Subject{{Kind: access.SubjectUser, Name: "reader"}}
	must(t, policy.SetBinding(ofUser))
	policy.SetClusterGrants(userGrants{})
	for name, tc := range map[string]struct {
		who  *identity.Principal
		user string
		want bool
	}{
		"administrator": {&identity.Principal{
			Name: "a", Organization: "acme", ServiceAccount: "a",
			Admin: true,
		}, "reader", true},
		"org-admin":          {account("boss"), "reader", true},
		"fewer permissions":  {account("worker"), "reader", false},
		"user without roles": {account("worker"), "plain", true},
		"grant of a cluster": {account("worker"), "granted", false},
		"another organization's": {&identity.Principal{
			Name: "o", Organization: "other", ServiceAccount: "o",
			Admin: true,
		}, "plain", false},
		"account with the user's name": {account("reader"), "reader", false},
		"the user itself": {
			&identity.Principal{Name: "r", Organization: "acme", User: "reader"},
			"reader", true,
		},
		"no principal": {nil, "plain", false},
	} {
		if err := policy.MayActAsUser(tc.who, "acme", tc.user); (err == nil) != tc.want {
			t.Errorf("%s: got %v, want allowed %v", name, err, tc.want)
		}
	}
}

// userGrants is a cluster that makes a grant to one user.
type userGrants struct{}

func (userGrants) GrantsOf(organization, account string) ([]access.ClusterGrant, error) {
	if account != identity.UserRole("granted") {
		return nil, nil
	}
	return []access.ClusterGrant{{
		Scope:       access.Scope{Organization: organization, Instance: "dev", Cluster: "c", Tenant: "t"},
		Permissions: []access.Permission{"messaging.topics.consume"},
	}}, nil
}
