package pools_test

import (
	"slices"
	"testing"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
)

func plan() *pools.Plan {
	return &pools.Plan{
		Domain: "streams.test",
		Pools: []pools.Pool{
			{
				Namespace: "cloud", Name: "shared",
				Members: []pools.Member{{Name: "east", Location: "us-east"}, {Name: "west", Location: "us-west"}},
			},
			{Namespace: "acme", Name: "own", Members: []pools.Member{{Name: "cellar", Location: "us-east"}}},
		},
	}
}

func ref(namespace, name string) *v1alpha1.ObjectReference {
	return &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
}

func TestAtLocation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pool     *v1alpha1.ObjectReference
		location string
		want     string
	}{
		"first pool that has it":   {nil, "us-east", "cloud/east"},
		"the instance's pool":      {ref("acme", "own"), "us-east", "acme/cellar"},
		"pool without a namespace": {ref("", "own"), "us-east", "acme/cellar"},
		"not in the pool":          {ref("acme", "own"), "us-west", ""},
		"unknown pool is any pool": {ref("x", "gone"), "us-west", "cloud/west"},
		"nowhere":                  {nil, "moon", ""},
		"no location":              {nil, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if member, ok := plan().AtLocation(tc.pool, tc.location); ok {
				got = member.Namespace + "/" + member.Name
			}
			if got != tc.want {
				t.Errorf("got member %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMember(t *testing.T) {
	t.Parallel()
	p := plan()
	tests := map[string]struct {
		ref  *v1alpha1.ObjectReference
		want string
	}{
		"with its namespace":  {ref("acme", "cellar"), "own"},
		"without a namespace": {ref("", "west"), "shared"},
		"another's namespace": {ref("acme", "west"), ""},
		"none":                {nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _, ok := p.Member(tc.ref)
			if pool.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("got pool %q (%v), want %q", pool.Name, ok, tc.want)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	p := plan()
	if got := p.DefaultPool(); got == nil || got.Name != "shared" || got.Namespace != "cloud" {
		t.Errorf("default pool: got %v, want the first", got)
	}
	if got := (&pools.Plan{}).DefaultPool(); got != nil {
		t.Errorf("default pool without pools: got %v, want nil", got)
	}
	if got, want := p.Locations(nil), []string{"us-east", "us-west", "us-east"}; !slices.Equal(got, want) {
		t.Errorf("locations: got %q, want %q", got, want)
	}
	if got := p.Endpoint("c", "acme"); got.DNSName != "c.acme.streams.test" || got.Type != "service" {
		t.Errorf("endpoint: got %+v, want c.acme.streams.test of type service", got)
	}
}
