package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

func allowed(t *testing.T, p *access.Policy, principal *identity.Principal, perm access.Permission,
	scope access.Scope,
) bool {
	t.Helper()
	decision, err := p.Authorize(context.Background(), principal, perm, scope)
	if decision.Allowed != (err == nil) {
		t.Fatalf("decision %+v with error %v, want an error exactly when it is not allowed", decision, err)
	}
	if err != nil && errs.KindOf(err) != errs.Denied {
		t.Fatalf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Denied)
	}
	return err == nil
}

func TestAuthorizeWithoutBindings(t *testing.T) {
	t.Parallel()
	system := &identity.Principal{Name: "root", Organization: "default", ServiceAccount: "admin", System: true}
	admin := &identity.Principal{Name: "boss", Organization: "acme", ServiceAccount: "boss", Admin: true}
	nobody := account("nobody")
	bound := func(p *identity.Principal, instance string) *identity.Principal {
		c := *p
		c.Instance = instance
		return &c
	}
	keyed := *nobody
	keyed.KeyName = "my-key"
	org := func(name string) access.Scope { return access.Scope{Organization: name} }
	tests := map[string]struct {
		who   *identity.Principal
		perm  access.Permission
		scope access.Scope
		by    access.By
	}{
		"system anywhere":        {system, "cloud.users.delete", org("acme"), access.BySystem},
		"system everywhere":      {system, "cloud.users.list", access.Scope{}, access.BySystem},
		"admin at home":          {admin, "cloud.users.delete", org("acme"), access.ByAdmin},
		"admin elsewhere":        {admin, "cloud.users.list", org("other"), ""},
		"admin everywhere":       {admin, "cloud.users.list", access.Scope{}, ""},
		"admin in a longer name": {admin, "cloud.users.list", org("acme2"), ""},
		"admin in another case":  {admin, "cloud.users.list", org("ACME"), ""},
		"system bound to an instance": {
			bound(system, "prod"), "messaging.topics.produce", everything,
			access.BySystem,
		},
		"system bound to another":          {bound(system, "dev"), "messaging.topics.produce", everything, ""},
		"admin bound, on the resource API": {bound(admin, "prod"), "cloud.users.list", org("acme"), ""},
		"nobody":                           {nobody, "messaging.topics.produce", everything, ""},
		"nobody lists":                     {nobody, "cloud.apikeys.list", org("acme"), ""},
		"own account": {
			nobody, "cloud.serviceaccounts.describe",
			access.Scope{Organization: "acme", ServiceAccount: "nobody"},
			access.BySelf,
		},
		"other account": {
			nobody, "cloud.serviceaccounts.describe",
			access.Scope{Organization: "acme", ServiceAccount: "boss"},
			"",
		},
		"same name elsewhere": {
			nobody, "cloud.serviceaccounts.describe",
			access.Scope{Organization: "other", ServiceAccount: "nobody"},
			"",
		},
		"deleting oneself": {
			nobody, "cloud.serviceaccounts.delete",
			access.Scope{Organization: "acme", ServiceAccount: "nobody"},
			"",
		},
		"own key by owner": {
			nobody, "cloud.apikeys.describe",
			access.Scope{Organization: "acme", ServiceAccount: "nobody", APIKey: "k"},
			access.BySelf,
		},
		"own key by use": {
			&keyed, "cloud.apikeys.describe",
			access.Scope{Organization: "acme", APIKey: "my-key"},
			access.BySelf,
		},
		"other key": {
			&keyed, "cloud.apikeys.describe",
			access.Scope{Organization: "acme", APIKey: "other"},
			"",
		},
		"no key name is no key": {nobody, "cloud.apikeys.describe", access.Scope{Organization: "acme"}, ""},
		"a user is not a service account": {
			&identity.Principal{Name: "u", Organization: "acme", User: "u"},
			"cloud.serviceaccounts.describe", org("acme"), "",
		},
		"empty principal":            {&identity.Principal{}, "cloud.users.list", access.Scope{}, ""},
		"organization empty on both": {&identity.Principal{Admin: true}, "cloud.users.list", access.Scope{}, ""},
		"unknown permission, admin":  {admin, "cloud.things.create", org("acme"), access.ByAdmin},
		"unknown permission, nobody": {nobody, "cloud.things.create", org("acme"), ""},
	}
	policy := access.NewPolicy()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decision, err := policy.Authorize(context.Background(), tc.who, tc.perm, tc.scope)
			if decision.By != tc.by || decision.Allowed != (tc.by != "") || (err == nil) != (tc.by != "") {
				t.Errorf("decision = %+v, %v; want by %q", decision, err, tc.by)
			}
			filter := policy.Filter(tc.who, tc.perm, tc.scope)
			if tc.by != access.BySelf && filter.All() != (tc.by != "") {
				t.Errorf("All = %v, want %v", filter.All(), tc.by != "")
			}
		})
	}
	if _, err := policy.Authorize(context.Background(), nil, "cloud.users.list",
		org("acme")); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("without a principal: kind of %v is %v, want %v", err, errs.KindOf(err), errs.Unauthenticated)
	}
}

func TestDenialNamesPermissionAndScope(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	_, err := policy.Authorize(context.Background(), account("ci"), "messaging.topics.produce", everything)
	var denial *access.Denial
	if !errors.As(err, &denial) || !errors.Is(err, access.ErrDenied) {
		t.Fatalf("error = %v, want a *Denial that is ErrDenied", err)
	}
	want := "ci@acme.test lacks permission messaging.topics.produce on " +
		"organization/acme/instance/prod/cluster/c1/tenant/public/namespace/default/domain/persistent/" +
		"topic/orders/subscription/s/subject/orders-value"
	if text := err.Error(); !strings.HasPrefix(text, want+": no RoleBinding gives it any permission") {
		t.Errorf("text of an account without bindings = %q\nwant   %q and the reason", err, want)
	}
	bound := access.Binding{
		Organization: "acme", Name: "b", Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "ci"}},
		RoleKind: "ClusterRole", Role: "billing-admin", Revision: 1,
	}
	if err := policy.SetBinding(bound); err != nil {
		t.Fatal(err)
	}
	_, err = policy.Authorize(context.Background(), account("ci"), "messaging.topics.produce", everything)
	if err.Error() != want {
		t.Errorf("text = %q\nwant   %q", err, want)
	}
	boundTo := account("ci")
	boundTo.Instance = "dev"
	for principal, want := range map[*identity.Principal]string{
		boundTo: "limited to instance dev",
		{Name: "x", Organization: "other", ServiceAccount: "x"}: "belongs to organization other",
	} {
		_, err := policy.Authorize(context.Background(), principal, "messaging.topics.produce", everything)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}

func TestRestrictions(t *testing.T) {
	t.Parallel()
	const produce = access.Permission("messaging.topics.produce")
	topic := func(name string) access.Scope { s := everything; s.Topic = name; return s }
	without := func(edit func(*access.Scope)) access.Scope { s := everything; edit(&s); return s }
	tests := map[string]struct {
		restriction access.Restriction
		scope       access.Scope
		want        bool
	}{
		"none":              {access.Restriction{}, everything, true},
		"none, wider scope": {access.Restriction{}, access.Scope{Organization: "acme"}, true},
		"instance":          {access.Restriction{Instance: "prod"}, everything, true},
		"other instance":    {access.Restriction{Instance: "dev"}, everything, false},
		"instance, but the call is wider": {
			access.Restriction{Instance: "prod"},
			access.Scope{Organization: "acme"},
			false,
		},
		"tenant and namespace":       {access.Restriction{Tenant: "public", Namespace: "default"}, everything, true},
		"one of two differs":         {access.Restriction{Tenant: "public", Namespace: "other"}, everything, false},
		"topic":                      {access.Restriction{Topic: "orders"}, everything, true},
		"topic is exact":             {access.Restriction{Topic: "order"}, everything, false},
		"topic is not its partition": {access.Restriction{Topic: "orders"}, topic("orders-partition-0"), false},
		"all partitions, parent":     {access.Restriction{Topic: "allPartition('orders')"}, topic("orders"), true},
		"all partitions, one": {
			access.Restriction{Topic: "allPartition('orders')"},
			topic("orders-partition-12"), true,
		},
		"all partitions, quotes": {
			access.Restriction{Topic: `allPartition("orders")`},
			topic("orders-partition-0"), true,
		},
		"all partitions, longer name": {access.Restriction{Topic: "allPartition('orders')"}, topic("orders2"), false},
		"all partitions, no number": {
			access.Restriction{Topic: "allPartition('orders')"},
			topic("orders-partition-x"), false,
		},
		"all partitions, leading zero": {
			access.Restriction{Topic: "allPartition('orders')"},
			topic("orders-partition-01"), false,
		},
		"all partitions, empty number": {
			access.Restriction{Topic: "allPartition('orders')"},
			topic("orders-partition-"), false,
		},
		"prefix":       {access.Restriction{Topic: "ord*"}, everything, true},
		"other prefix": {access.Restriction{Topic: "pay*"}, everything, false},
		"star":         {access.Restriction{Topic: "*"}, everything, true},
		"star needs something": {
			access.Restriction{Topic: "*"},
			without(func(s *access.Scope) { s.Topic = "" }), false,
		},
		"domain":       {access.Restriction{TopicDomain: "persistent"}, everything, true},
		"other domain": {access.Restriction{TopicDomain: "non-persistent"}, everything, false},
		"subscription": {access.Restriction{Subscription: "s"}, everything, true},
		"subject":      {access.Restriction{Subject: "orders-value"}, everything, true},
		"subject, call has none": {
			access.Restriction{Subject: "orders-value"},
			without(func(s *access.Scope) { s.Subject = "" }), false,
		},
		"service account":        {access.Restriction{ServiceAccount: "x"}, everything, false},
		"secret matches nothing": {access.Restriction{Secret: "x"}, everything, false},
		"own organization":       {access.Restriction{Organization: "acme"}, everything, true},
		"other organization":     {access.Restriction{Organization: "other"}, everything, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := access.NewPolicy()
			must(t, policy.SetBinding(binding("ci", "topic-producer", &tc.restriction)))
			if got := allowed(t, policy, account("ci"), produce, tc.scope); got != tc.want {
				t.Errorf("allowed = %v, want %v", got, tc.want)
			}
			if allowed(t, policy, account("other"), produce, tc.scope) {
				t.Error("another account is allowed")
			}
			// A list of restrictions has the same effect.
			old := binding("old", "topic-producer", nil)
			old.ResourceNames = []access.Restriction{{Instance: "nowhere"}, tc.restriction}
			must(t, policy.SetBinding(old))
			if got := allowed(t, policy, account("old"), produce, tc.scope); got != tc.want {
				t.Errorf("as one of resourceNames, allowed = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const produce = access.Permission("messaging.topics.produce")
	tests := map[string]struct {
		cel   string
		scope access.Scope
		want  bool
	}{
		"names": {
			"srn.instance == 'prod' && srn.tenant == 'public' && srn.topic_name == 'orders'",
			everything, true,
		},
		"other name":         {"srn.instance == 'dev'", everything, false},
		"alternatives":       {"srn.topic_name in ['payments', 'orders']", everything, true},
		"prefix":             {"srn.topic_name.startsWith('ord')", everything, true},
		"regular expression": {"srn.topic_name.matches('^o[a-z]+$')", everything, true},
		"true":               {"true", everything, true},
		"false":              {"false", everything, false},
		"every variable": {
			"srn.organization == 'acme' && srn.cluster == 'c1' && srn.namespace == 'default' && " +
				"srn.topic_domain == 'persistent' && srn.subscription == 's' && srn.subject == 'orders-value'",
			everything, true,
		},
		"empty fields are unknown values": {
			"srn.tenant != 'secret'",
			access.Scope{Organization: "acme", Instance: "prod"},
			false,
		},
		"true for all unknown values": {
			"srn.instance == 'prod' || srn.tenant == 'x'",
			access.Scope{Organization: "acme", Instance: "prod"},
			true,
		},
		"false for all unknown values": {
			"srn.instance == 'dev' && srn.tenant == 'x'",
			access.Scope{Organization: "acme", Instance: "prod"},
			false,
		},
		"size of an empty field":            {"size(srn.tenant) == 0", access.Scope{Organization: "acme"}, false},
		"never a secret":                    {"srn.secret == ''", everything, false},
		"an error does not match":           {"1 / (size(srn.tenant) - 6) == 1", everything, false},
		"an error in an alternative":        {"true || 1 / 0 == 1", everything, true},
		"a regular expression with choices": {"srn.topic_name.matches('(a|o)*r.*s')", everything, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := access.NewPolicy()
			b := binding("ci", "topic-producer", nil)
			b.CEL = tc.cel
			must(t, policy.SetBinding(b))
			if got := allowed(t, policy, account("ci"), produce, tc.scope); got != tc.want {
				t.Errorf("allowed = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPermissionsInheritDownwards(t *testing.T) {
	t.Parallel()
	// A permission on a scope applies to everything within it, for every form of
	// restriction.
	bindings := []access.Binding{
		binding("ci", "instance-owner", &access.Restriction{Instance: "prod"}),
		binding("ci", "tenant-owner", &access.Restriction{Tenant: "pub*"}),
		binding("ci", "topic-consumer", &access.Restriction{Topic: "allPartition('orders')"}),
	}
	for _, cel := range []string{
		"srn.tenant != 'x'", "srn.instance == 'prod'", "!(srn.topic_name == 'y')",
		"srn.namespace == 'default' || srn.tenant == ''",
	} {
		b := binding("ci", "cluster-owner", nil)
		b.CEL = cel
		bindings = append(bindings, b)
	}
	wider := []access.Scope{{Organization: "acme"}}
	for _, step := range []func(*access.Scope){
		func(s *access.Scope) { s.Instance = "prod" },
		func(s *access.Scope) { s.Cluster = "c1" },
		func(s *access.Scope) { s.Tenant = "public" },
		func(s *access.Scope) { s.Namespace = "default" },
		func(s *access.Scope) { s.TopicDomain, s.Topic = "persistent", "orders" },
		func(s *access.Scope) { s.Subscription = "s" },
	} {
		next := wider[len(wider)-1]
		step(&next)
		wider = append(wider, next)
	}
	for i, b := range bindings {
		policy := access.NewPolicy()
		must(t, policy.SetBinding(b))
		for _, perm := range access.Permissions() {
			held := false
			for _, scope := range wider {
				now := allowed(t, policy, account("ci"), perm, scope)
				if held && !now {
					t.Fatalf("binding %d: %s is allowed on the scope around %v but not on it", i, perm, scope)
				}
				held = now
			}
		}
	}
}

func TestDecisionNamesRoleAndBinding(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	must(t, policy.SetBinding(binding("ci", "topic-producer", nil)))
	must(t, policy.SetBinding(access.Binding{
		Organization: "acme", Name: "readers", RoleKind: "Role", Role: "read-only",
		Subjects: []access.Subject{
			{Kind: access.SubjectUser, Name: "ann@acme.com", Organization: "acme"},
			{Kind: access.SubjectIdentityPool, Name: "pool"},
		},
	}))
	got, err := policy.Authorize(context.Background(), account("ci"), "messaging.topics.produce", everything)
	if want := (access.Decision{
		Allowed: true, By: access.ByBinding, Role: "topic-producer",
		Binding: "ci-topic-producer",
	}); err != nil || got != want {
		t.Errorf("decision = %+v, %v; want %+v", got, err, want)
	}
	ann := &identity.Principal{Name: "ann", Organization: "acme", User: "ann@acme.com"}
	got, err = policy.Authorize(context.Background(), ann, "messaging.topics.list", everything)
	if want := (access.Decision{
		Allowed: true, By: access.ByBinding, Role: "org-readonly",
		Binding: "readers",
	}); err != nil || got != want {
		t.Errorf("decision = %+v, %v; want %+v", got, err, want)
	}
	if allowed(t, policy, account("ann@acme.com"), "messaging.topics.list", everything) {
		t.Error("service account with a user's name has the user's role")
	}
	elsewhere := *ann
	elsewhere.Organization = "other"
	scope := everything
	scope.Organization = "other"
	if allowed(t, policy, &elsewhere, "messaging.topics.list", scope) {
		t.Error("user with the same name in another organization has the role")
	}
}

func TestBindingsChange(t *testing.T) {
	t.Parallel()
	const produce, consume = access.Permission("messaging.topics.produce"),
		access.Permission("messaging.topics.consume")
	at := func(role string, revision int64, subjects ...string) access.Binding {
		b := access.Binding{Organization: "acme", Name: "b", RoleKind: "ClusterRole", Role: role, Revision: revision}
		for _, s := range subjects {
			b.Subjects = append(b.Subjects, access.Subject{Kind: access.SubjectServiceAccount, Name: s})
		}
		return b
	}
	tests := map[string]struct {
		do               func(*access.Policy)
		produce, consume bool // may account a
		other            bool // may account b produce
	}{
		"set": {
			func(p *access.Policy) { must(t, p.SetBinding(at("topic-producer", 1, "a", "b", "a"))) },
			true, false, true,
		},
		"role changed": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 1, "a")))
			must(t, p.SetBinding(at("topic-consumer", 2, "a")))
		}, false, true, false},
		"subject removed": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 1, "a", "b")))
			must(t, p.SetBinding(at("topic-producer", 2, "b")))
		}, false, false, true},
		"deleted": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 1, "a")))
			p.DeleteBinding("acme", "b", 2)
		}, false, false, false},
		"late set": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 3, "a")))
			must(t, p.SetBinding(at("topic-consumer", 2, "a")))
		}, true, false, false},
		"late after delete": {func(p *access.Policy) {
			p.DeleteBinding("acme", "b", 5)
			must(t, p.SetBinding(at("topic-producer", 4, "a")))
		}, false, false, false},
		"created again": {func(p *access.Policy) {
			p.DeleteBinding("acme", "b", 5)
			must(t, p.SetBinding(at("topic-producer", 6, "a")))
		}, true, false, false},
		"late delete": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 6, "a")))
			p.DeleteBinding("acme", "b", 5)
		}, true, false, false},
		"created again unchanged, and a late delete": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 3, "a")))
			must(t, p.SetBinding(at("topic-producer", 6, "a")))
			p.DeleteBinding("acme", "b", 5)
		}, true, false, false},
		"unchanged, late": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 6, "a")))
			must(t, p.SetBinding(at("topic-producer", 3, "a")))
			must(t, p.SetBinding(at("topic-consumer", 5, "a")))
		}, true, false, false},
		"condition added and removed": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 1, "a")))
			condition := at("topic-producer", 2, "a")
			condition.CEL = "srn.topic_name == 'orders'"
			must(t, p.SetBinding(condition))
			must(t, p.SetBinding(condition))
			must(t, p.SetBinding(at("topic-producer", 3, "a")))
		}, true, false, false},
		"turned invalid": {func(p *access.Policy) {
			must(t, p.SetBinding(at("topic-producer", 1, "a")))
			if err := p.SetBinding(at("nonsense", 2, "a")); errs.KindOf(err) != errs.Invalid {
				t.Errorf("error = %v, want one of kind %v", err, errs.Invalid)
			}
		}, false, false, false},
		"delete of a missing binding": {
			func(p *access.Policy) { p.DeleteBinding("acme", "b", 0) },
			false, false, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := access.NewPolicy()
			tc.do(p)
			for _, c := range []struct {
				account string
				perm    access.Permission
				want    bool
			}{{"a", produce, tc.produce}, {"a", consume, tc.consume}, {"b", produce, tc.other}} {
				if got := allowed(t, p, account(c.account), c.perm, everything); got != c.want {
					t.Errorf("account %s, %s: allowed = %v, want %v", c.account, c.perm, got, c.want)
				}
			}
		})
	}
}

func TestInvalidBindingsNameTheField(t *testing.T) {
	t.Parallel()
	good := func() access.Binding { return binding("ci", "topic-producer", nil) }
	edit := func(f func(*access.Binding)) access.Binding { b := good(); f(&b); return b }
	tests := map[string]struct {
		b           access.Binding
		field, want string
	}{
		"role kind": {edit(func(b *access.Binding) { b.RoleKind = "Group" }), "spec.roleRef.kind", "ClusterRole"},
		"role":      {edit(func(b *access.Binding) { b.Role = "emperor" }), "spec.roleRef.name", "topic-producer"},
		"subject kind": {
			edit(func(b *access.Binding) { b.Subjects[0].Kind = "Group" }), "spec.subjects[0].kind",
			"ServiceAccount",
		},
		"subject name": {edit(func(b *access.Binding) { b.Subjects[0].Name = "" }), "spec.subjects[0].name", "empty"},
		"foreign subject": {
			edit(func(b *access.Binding) { b.Subjects[0].Organization = "other" }),
			"spec.subjects[0].namespace", "other organizations",
		},
		"two forms": {
			edit(func(b *access.Binding) { b.CEL = "true"; b.Restriction = &access.Restriction{} }),
			"spec", "at most one",
		},
		"other two forms": {
			edit(func(b *access.Binding) { b.CEL = "true"; b.ResourceNames = []access.Restriction{{}} }),
			"spec", "at most one",
		},
		"expression":     {edit(func(b *access.Binding) { b.CEL = "srn." }), "spec.cel", "valid"},
		"misspelled":     {edit(func(b *access.Binding) { b.CEL = "srn.topicname == 'x'" }), "spec.cel", "undeclared"},
		"not a boolean":  {edit(func(b *access.Binding) { b.CEL = "srn.tenant" }), "spec.cel", "true or false"},
		"wrong type":     {edit(func(b *access.Binding) { b.CEL = "srn.tenant == 5" }), "spec.cel", "valid"},
		"bad expression": {edit(func(b *access.Binding) { b.CEL = "srn.tenant.matches('(')" }), "spec.cel", "valid"},
		"long expression": {
			edit(func(b *access.Binding) { b.CEL = strings.Repeat("true || ", 1000) + "true" }),
			"spec.cel", "longer",
		},
		"deep expression": {edit(func(b *access.Binding) {
			b.CEL = strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500)
		}), "spec.cel", ""},
		"function": {
			edit(func(b *access.Binding) { b.Restriction = &access.Restriction{Topic: "anyOf('x')"} }),
			"spec.resourceNameRestriction", "topic is not a name",
		},
		"partition of tenant": {
			edit(func(b *access.Binding) { b.Restriction = &access.Restriction{Tenant: "allPartition('x')"} }),
			"spec.resourceNameRestriction", "only a topic",
		},
		"open parenthesis": {
			edit(func(b *access.Binding) { b.Restriction = &access.Restriction{Topic: "allPartition('x'"} }),
			"spec.resourceNameRestriction", "topic",
		},
		"star inside": {
			edit(func(b *access.Binding) { b.ResourceNames = []access.Restriction{{Topic: "a*b"}} }),
			"spec.resourceNames", "topic",
		},
		"long value": {
			edit(func(b *access.Binding) { b.Restriction = &access.Restriction{Topic: strings.Repeat("x", 600)} }),
			"spec.resourceNameRestriction", "longer",
		},
		"many subjects": {
			edit(func(b *access.Binding) { b.Subjects = make([]access.Subject, 1001) }),
			"spec.subjects", "1000",
		},
		"many names": {
			edit(func(b *access.Binding) { b.ResourceNames = make([]access.Restriction, 1001) }),
			"spec.resourceNames", "1000",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.b.Validate()
			var field *access.FieldError
			if !errors.As(err, &field) || errs.KindOf(err) != errs.Invalid {
				t.Fatalf("error = %v, want a FieldError of kind %v", err, errs.Invalid)
			}
			if field.Field != tc.field || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %q, want %s and %q", err, tc.field, tc.want)
			}
			p := access.NewPolicy()
			for range 2 { // the second time the policy has the binding
				if err := p.SetBinding(tc.b); err == nil {
					t.Error("SetBinding succeeds, want an error")
				}
				if allowed(t, p, account("ci"), "messaging.topics.produce", everything) {
					t.Error("invalid binding grants a permission")
				}
			}
		})
	}
	b := good()
	must(t, b.Validate())
}
