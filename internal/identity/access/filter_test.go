package access_test

import (
	"sync"
	"testing"

	"freshet/internal/identity/access"
)

func TestFilterHidesForbiddenResources(t *testing.T) {
	t.Parallel()
	const list = access.Permission("messaging.topics.list")
	policy := access.NewPolicy()
	must(t, policy.SetBinding(binding("some", "topic-consumer", &access.Restriction{Tenant: "public", Topic: "ord*"})))
	must(t, policy.SetBinding(binding("all", "cluster-readonly", &access.Restriction{Cluster: "c1"})))
	cel := binding("cel", "topic-consumer", nil)
	cel.CEL = "srn.topic_name == 'orders'"
	must(t, policy.SetBinding(cel))
	cluster := access.Scope{Organization: "acme", Instance: "prod", Cluster: "c1"}
	at := func(tenant, topic string) access.Scope {
		s := cluster
		s.Tenant, s.Namespace, s.Topic = tenant, "default", topic
		return s
	}
	tests := map[string]struct {
		who       string
		scope     access.Scope
		all, none bool
		sees      map[access.Scope]bool
	}{
		"some": {
			"some", cluster, false, false,
			map[access.Scope]bool{
				at("public", "orders"): true, at("public", "payments"): false,
				at("secret", "orders"): false,
			},
		},
		"all": {
			"all", cluster, true, false,
			map[access.Scope]bool{at("public", "orders"): true, at("secret", "x"): true},
		},
		"cel": {
			"cel", cluster, false, false,
			map[access.Scope]bool{at("public", "orders"): true, at("public", "x"): false},
		},
		"none": {"none", cluster, false, true, map[access.Scope]bool{at("public", "orders"): false}},
		"other tenant": {
			"some",
			access.Scope{Organization: "acme", Instance: "prod", Cluster: "c1", Tenant: "secret"},
			false, true, nil,
		},
		"other cluster": {"all", access.Scope{Organization: "acme", Instance: "prod", Cluster: "c2"}, false, true, nil},
		"wider": {
			"all",
			access.Scope{Organization: "acme"},
			false, false,
			map[access.Scope]bool{at("public", "orders"): true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := policy.Filter(account(tc.who), list, tc.scope)
			if f.All() != tc.all || f.None() != tc.none || f.Decision().Allowed == tc.none {
				t.Errorf("All = %v, None = %v, Decision = %+v; want %v, %v, allowed %v", f.All(), f.None(),
					f.Decision(), tc.all, tc.none, !tc.none)
			}
			for scope, want := range tc.sees {
				if f.Allows(scope) != want {
					t.Errorf("Allows(%v) = %v, want %v", scope, !want, want)
				}
				if allowed(t, policy, account(tc.who), list, scope) != want {
					t.Errorf("Authorize for %v: allowed = %v, want %v", scope, !want, want)
				}
			}
			foreign := at("public", "orders")
			foreign.Organization = "other"
			if !tc.all && f.Allows(foreign) {
				t.Error("filter allows another organization")
			}
		})
	}
	none := policy.Filter(nil, list, cluster)
	if !none.None() || none.Allows(cluster) {
		t.Errorf("without a principal None = %v, Allows = %v; want true, false", none.None(), none.Allows(cluster))
	}
}

func TestPolicyUnderConcurrentUse(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	must(t, policy.SetBinding(binding("steady", "topic-producer", nil)))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !allowed(t, policy, account("steady"), "messaging.topics.produce", everything) {
					t.Error("account was denied while its binding was replaced")
				}
			}
		})
	}
	for i := range 2000 {
		b := binding("steady", "topic-producer", nil)
		b.Restriction = []*access.Restriction{nil, {Instance: "prod"}}[i%2]
		must(t, policy.SetBinding(b))
		must(t, policy.SetBinding(binding("other", "org-admin", nil)))
		policy.DeleteBinding("acme", "other-org-admin", 0)
	}
	close(stop)
	wg.Wait()
}
