package quota

import (
	"maps"
	"slices"
)

// Account names who pays for state that Kafka clients create: consumer groups, committed offsets
// and producers.
type Account struct {
	Tenant string // tenant that the state belongs to
	Name   string // principal that created the state; "" when that is not known
}

// StateCounter counts client state that is stored. Its methods must be fast and must not call
// this package.
type StateCounter interface {
	// CountState returns the bytes of the account in all tenants, of the tenant, and of all.
	CountState(a Account) (account, tenant, all int64)
	// EachAccountState and EachTenantState call visit for the bytes of each account and of each tenant. They may
	// call it more than once for each.
	EachAccountState(visit func(account string, bytes int64))
	EachTenantState(visit func(tenant string, bytes int64))
}

// clientState counts the client state of a cluster. Organization.mu protects it. Stored state is
// not in the maps: counters reads it from its owners.
type clientState struct {
	accounts map[string]int64
	tenants  map[string]int64
	all      int64
	counters []StateCounter
}

// ReserveState adds n bytes of client state, unless the account, its tenant, the cluster or the
// organization would exceed its quota. The caller releases them with AddState and a negative
// number when the state is deleted, or when a StateCounter counts it. Without growth it never fails.
func (c *Cluster) ReserveState(a Account, n int64) error {
	if c == nil || n <= 0 {
		return nil
	}
	o := c.organization
	o.mu.Lock()
	defer o.mu.Unlock()
	account, tenant, all := c.countStateLocked(a)
	for _, b := range []struct {
		resource Resource
		owner    string
		used     int64
	}{
		{AccountStateBytes, "account " + a.Name, account},
		{TenantStateBytes, "tenant " + a.Tenant, tenant},
		{ClientStateBytes, "cluster " + c.name, all},
	} {
		if b.resource == AccountStateBytes && a.Name == "" {
			continue
		}
		if limit := c.Limits()[b.resource]; limit > 0 && b.used+n > limit {
			o.rejections[b.resource].Add(1)
			return exhausted(b.owner, b.resource, b.used, n, limit, true)
		}
		if limit := o.Limits()[b.resource]; b.resource != ClientStateBytes && limit > 0 && b.used+n > limit {
			o.rejections[b.resource].Add(1)
			return exhausted(b.owner, b.resource, b.used, n, limit, false)
		}
	}
	if limit := o.Limits()[ClientStateBytes]; limit > 0 {
		used := all
		for _, other := range *o.clusters.Load() {
			if other != c {
				used += other.allStateLocked()
			}
		}
		if used+n > limit {
			return o.reject(ClientStateBytes, used, n, limit)
		}
	}
	c.addStateLocked(a, n)
	return nil
}

// AddState adds n bytes of client state, or removes them if n is negative, whatever the quotas are. It is for
// state that exists: state that is loaded after a start, and state that is deleted.
func (c *Cluster) AddState(a Account, n int64) {
	if c == nil || n == 0 {
		return
	}
	c.organization.mu.Lock()
	defer c.organization.mu.Unlock()
	c.addStateLocked(a, n)
}

func (c *Cluster) addStateLocked(a Account, n int64) {
	s := &c.state
	if s.accounts == nil {
		s.accounts, s.tenants = make(map[string]int64), make(map[string]int64)
	}
	s.all += n
	if a.Name != "" {
		add(s.accounts, a.Name, n)
	}
	add(s.tenants, a.Tenant, n)
}

func add(counts map[string]int64, key string, n int64) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}

// AddStateCounter adds a counter of stored client state.
func (c *Cluster) AddStateCounter(counter StateCounter) {
	if c == nil {
		return
	}
	c.organization.mu.Lock()
	defer c.organization.mu.Unlock()
	c.state.counters = append(slices.Clip(c.state.counters), counter)
}

// RemoveStateCounter removes a counter.
func (c *Cluster) RemoveStateCounter(counter StateCounter) {
	if c == nil {
		return
	}
	c.organization.mu.Lock()
	defer c.organization.mu.Unlock()
	c.state.counters = slices.DeleteFunc(slices.Clone(c.state.counters),
		func(other StateCounter) bool { return other == counter })
}

func (c *Cluster) countStateLocked(a Account) (account, tenant, all int64) {
	s := &c.state
	account, tenant, all = s.accounts[a.Name], s.tenants[a.Tenant], s.all
	for _, counter := range s.counters {
		ofAccount, ofTenant, ofAll := counter.CountState(a)
		account, tenant, all = account+ofAccount, tenant+ofTenant, all+ofAll
	}
	return account, tenant, all
}

func (c *Cluster) allStateLocked() int64 {
	_, _, all := c.countStateLocked(Account{})
	return all
}

// usedState returns the client state of the cluster, or of the tenant or the account that has the most.
func (c *Cluster) usedState(r Resource) int64 {
	c.organization.mu.Lock()
	defer c.organization.mu.Unlock()
	if r == ClientStateBytes {
		return c.allStateLocked()
	}
	counts := make(map[string]int64)
	count := func(key string, n int64) { counts[key] += n }
	if r == TenantStateBytes {
		maps.Copy(counts, c.state.tenants)
		for _, counter := range c.state.counters {
			counter.EachTenantState(count)
		}
	} else {
		maps.Copy(counts, c.state.accounts)
		for _, counter := range c.state.counters {
			counter.EachAccountState(count)
		}
	}
	most := int64(0)
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}
