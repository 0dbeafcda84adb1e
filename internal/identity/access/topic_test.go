package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// clusterPermissions grants permissions of one cluster. A key is a role, a permission and
// the name of a topic, of a namespace (tenant/namespace/) or of a tenant (tenant//).
type clusterPermissions map[[3]string]bool

func (c clusterPermissions) Granted(role string, p access.Permission, topic names.Topic) bool {
	return c[[3]string{role, string(p), topic.Namespace.Tenant + "/" + topic.Namespace.Name + "/" + topic.Local}]
}

func (c clusterPermissions) GrantedWithin(role string, p access.Permission, within names.Namespace) bool {
	for key := range c {
		name, _, _ := strings.Cut(key[2], "/")
		if key[0] == role && key[1] == string(p) && (within.Tenant == "" || name == within.Tenant) {
			return true
		}
	}
	return false
}

const (
	permitProduce = access.Permission("messaging.topics.produce")
	permitDelete  = access.Permission("messaging.subscriptions.delete")
)

var clusterScope = access.Scope{Organization: "acme", Instance: "prod", Cluster: "east"}

func topicOf(tenant, namespace, local string) names.Topic {
	return names.Topic{Namespace: names.Namespace{Tenant: tenant, Name: namespace}, Local: local}
}

func TestTopicScope(t *testing.T) {
	t.Parallel()
	got := access.TopicScope(clusterScope, topicOf("public", "default", "orders"))
	want := clusterScope
	want.Tenant, want.Namespace, want.TopicDomain, want.Topic = "public", "default", "persistent", "orders"
	if got != want {
		t.Errorf("got scope %+v, want %+v", got, want)
	}
	if clusterScope.Topic != "" {
		t.Error("TopicScope changed the scope of the cluster")
	}
}

func TestAuthorizeTopic(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	if err := policy.SetBinding(access.Binding{
		Organization: "acme", Name: "b", Role: "topic-producer", RoleKind: "ClusterRole",
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "bound"}},
		Restriction: &access.Restriction{
			Organization: "acme", Tenant: "public", Namespace: "default", Topic: "orders",
		},
	}); err != nil {
		t.Fatal(err)
	}
	granted := clusterPermissions{
		{"app@acme", string(permitProduce), "public/default/orders"}:        true,
		{"app@acme", string(permitDelete), "public//"}:                      true,
		{"app@acme", "messaging.namespaces.describe", "public/default/"}:    true,
		{"app@acme", "messaging.namespaces.list", "public//"}:               true,
		{"user@host", string(permitProduce), "public/default/orders"}:       true,
		{"app@elsewhere", string(permitProduce), "public/default/orders"}:   true,
		{"app@acme.host:80", string(permitProduce), "public/default/other"}: true,
	}
	orders := access.TopicScope(clusterScope, topicOf("public", "default", "orders"))
	other := access.TopicScope(clusterScope, topicOf("public", "default", "other"))
	within := func(edit func(*access.Scope)) access.Scope {
		scope := clusterScope
		scope.Tenant = "public"
		edit(&scope)
		return scope
	}
	principal := func(organization, account, instance string) *identity.Principal {
		return &identity.Principal{
			Name: account + "@" + organization + ".host:80", Organization: organization, ServiceAccount: account,
			Instance: instance,
		}
	}
	admin := principal("acme", "boss", "")
	admin.Admin = true
	tests := map[string]struct {
		principal  *identity.Principal
		permission access.Permission
		scope      access.Scope
		by         access.By // "" for a denial
	}{
		"administrator":        {admin, permitProduce, other, access.ByAdmin},
		"role binding":         {principal("acme", "bound", ""), permitProduce, orders, access.ByBinding},
		"binding, other topic": {principal("acme", "bound", ""), permitProduce, other, ""},
		"cluster":              {principal("acme", "app", ""), permitProduce, orders, access.ByCluster},
		"cluster, subscription": {
			principal("acme", "app", ""), permitProduce, withSubscription(orders), access.ByCluster,
		},
		"cluster, other topic": {principal("acme", "app", ""), permitProduce, other, ""},
		"cluster, other permission": {
			principal("acme", "app", ""), "messaging.topics.consume", orders, "",
		},
		"cluster, own instance":   {principal("acme", "app", "prod"), permitProduce, orders, access.ByCluster},
		"cluster, other instance": {principal("acme", "app", "dev"), permitProduce, orders, ""},
		"cluster, other company":  {principal("elsewhere", "app", ""), permitProduce, orders, ""},
		"cluster, user by principal name": {
			&identity.Principal{Name: "user@host", Organization: "acme", User: "user"}, permitProduce, orders,
			access.ByCluster,
		},
		"cluster, namespace": {
			principal("acme", "app", ""), "messaging.namespaces.describe",
			within(func(s *access.Scope) { s.Namespace = "default" }), access.ByCluster,
		},
		"cluster, consumer group": {
			principal("acme", "app", ""), permitDelete,
			within(func(s *access.Scope) { s.Subscription = "g" }), access.ByCluster,
		},
		"cluster, the tenant itself": {
			principal("acme", "app", ""), "messaging.namespaces.list", within(func(*access.Scope) {}), "",
		},
		"cluster, the whole cluster": {principal("acme", "app", ""), permitProduce, clusterScope, ""},
		"unknown account":            {principal("acme", "nobody", ""), permitProduce, orders, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decision, err := access.AuthorizeTopic(t.Context(), policy, granted, tc.principal, tc.permission, tc.scope)
			if decision.By != tc.by || decision.Allowed != (tc.by != "") {
				t.Errorf("got decision %+v, want one by %q", decision, tc.by)
			}
			var denial *access.Denial
			if allowed := tc.by != ""; allowed != (err == nil) || !allowed && (!errors.As(err, &denial) ||
				denial.Permission != tc.permission || denial.Scope != tc.scope) {
				t.Errorf("got error %v, want a denial of %s: %v", err, tc.permission, !allowed)
			}
		})
	}
}

func withSubscription(scope access.Scope) access.Scope {
	scope.Subscription = "s"
	return scope
}

// failingAuthorizer is an authorizer that cannot decide.
type failingAuthorizer struct{ err error }

func (f failingAuthorizer) Authorize(context.Context, *identity.Principal, access.Permission,
	access.Scope,
) (access.Decision, error) {
	return access.Decision{}, f.err
}

// TestAuthorizeTopicWithoutADecision: the cluster's permissions are not asked if the policy
// fails or if there is no principal.
func TestAuthorizeTopicWithoutADecision(t *testing.T) {
	t.Parallel()
	granted := clusterPermissions{{"app@acme", string(permitProduce), "public/default/orders"}: true}
	orders := access.TopicScope(clusterScope, topicOf("public", "default", "orders"))
	app := &identity.Principal{Organization: "acme", ServiceAccount: "app"}
	broken := errs.New(errs.Unavailable, "broken")
	if _, err := access.AuthorizeTopic(t.Context(), failingAuthorizer{broken}, granted, app, permitProduce,
		orders); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if _, err := access.AuthorizeTopic(t.Context(), access.NewPolicy(), granted, nil, permitProduce,
		orders); !errors.Is(err, access.ErrNoPrincipal) {
		t.Errorf("got %v, want %v", err, access.ErrNoPrincipal)
	}
}

func TestGrantedWithin(t *testing.T) {
	t.Parallel()
	granted := clusterPermissions{{"app@acme", string(permitProduce), "public/default/orders"}: true}
	app := &identity.Principal{Organization: "acme", ServiceAccount: "app"}
	stranger := &identity.Principal{Organization: "elsewhere", ServiceAccount: "app"}
	for _, tc := range []struct {
		principal *identity.Principal
		tenant    string
		want      bool
	}{{app, "", true}, {app, "public", true}, {app, "other", false}, {stranger, "", false}, {nil, "", false}} {
		scope := clusterScope
		scope.Tenant = tc.tenant
		if got := access.GrantedWithin(granted, tc.principal, permitProduce, scope); got != tc.want {
			t.Errorf("%+v in tenant %q: got %v, want %v", tc.principal, tc.tenant, got, tc.want)
		}
	}
}
