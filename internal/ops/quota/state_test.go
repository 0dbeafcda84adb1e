package quota_test

import (
	"errors"
	"strings"
	"testing"

	"freshet/internal/ops/quota"
)

// storedState counts stored state of one account and its tenant.
type storedState struct {
	quota.Account
	bytes int64
}

func (s *storedState) CountState(a quota.Account) (account, tenant, all int64) {
	if a.Name == s.Name {
		account = s.bytes
	}
	if a.Tenant == s.Tenant {
		tenant = s.bytes
	}
	return account, tenant, s.bytes
}

func (s *storedState) EachAccountState(visit func(string, int64)) { visit(s.Name, s.bytes) }

func (s *storedState) EachTenantState(visit func(string, int64)) { visit(s.Tenant, s.bytes) }

// TestClientState checks the limits of an account, a tenant, a cluster and an organization: each rejects what
// exceeds it, and nothing else.
func TestClientState(t *testing.T) {
	t.Parallel()
	book := quota.New(quota.Limits{
		quota.AccountStateBytes: 100, quota.TenantStateBytes: 200, quota.ClientStateBytes: 500,
	}, nil)
	o := book.Organization("acme")
	a, b := o.Open("a", quota.Limits{quota.ClientStateBytes: 350}), o.Open("b", quota.Limits{})
	for i, c := range []struct {
		in           *quota.Cluster
		tenant, name string
		n            int64
		want         string // in the error; "" for success
	}{
		{a, "t", "x", 90, ""},
		{a, "t", "x", 20, "account x uses 90 of 100 accountStateBytes"},
		{a, "u", "x", 20, "account x uses 90 of 100 accountStateBytes"},
		{a, "t", "y", 100, ""},
		{a, "t", "z", 20, "tenant t uses 190 of 200 tenantStateBytes"},
		{a, "t", "z", 10, ""},
		{a, "u", "z", 90, ""},
		{a, "v", "w", 61, "cluster a uses 290 of 350 clientStateBytes"},
		{a, "v", "w", 60, ""},
		{b, "t", "x", 100, ""},
		{b, "t", "y", 51, "organization acme uses 450 of 500 clientStateBytes"},
		{b, "t", "y", 50, ""},
		{b, "t", "y", 0, ""},
	} {
		err := c.in.ReserveState(quota.Account{Tenant: c.tenant, Name: c.name}, c.n)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, quota.ErrExhausted) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("step %d: got %v, want %q", i, err, c.want)
		}
	}
	for r, want := range map[quota.Resource]int64{
		quota.AccountStateBytes: 100, quota.TenantStateBytes: 200, quota.ClientStateBytes: 500,
	} {
		if got := o.Used(r); got != want {
			t.Errorf("%s: got %d, want %d", r, got, want)
		}
	}
	if n := o.Rejections(); n[quota.AccountStateBytes] != 2 || n[quota.TenantStateBytes] != 1 ||
		n[quota.ClientStateBytes] != 2 {
		t.Errorf("got rejections %v", n)
	}
	a.AddState(quota.Account{Tenant: "t", Name: "y"}, -100)
	if err := b.ReserveState(quota.Account{Tenant: "u", Name: "y"}, 50); err != nil {
		t.Errorf("after a deletion: %v", err)
	}

	stored := &storedState{quota.Account{Tenant: "t", Name: "x"}, 1000}
	a.AddStateCounter(stored)
	if got := a.Used(quota.AccountStateBytes); got != 1090 {
		t.Errorf("with stored state: got %d, want 1090", got)
	}
	if err := a.ReserveState(quota.Account{Tenant: "t", Name: "x"}, 1); !errors.Is(err, quota.ErrExhausted) {
		t.Errorf("with stored state: got %v, want %v", err, quota.ErrExhausted)
	}
	a.RemoveStateCounter(stored)
	if account, tenant, all := a.StateOf(quota.Account{Tenant: "t", Name: "x"}); account != 90 || tenant != 100 ||
		all != 250 {
		t.Errorf("got %d, %d, %d, want 90, 100, 250", account, tenant, all)
	}
	var none *quota.Cluster
	if err := none.ReserveState(quota.Account{}, 1); err != nil {
		t.Errorf("without quotas: %v", err)
	}
}
