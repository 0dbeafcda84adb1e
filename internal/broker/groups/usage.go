package groups

import (
	"cmp"
	"fmt"

	"github.com/tidwall/btree"

	"freshet/internal/ops/quota"
)

// What clients create counts towards the quotas of their account, their tenant and the cluster
// (docs/spec/resources.md#quotas). Stored groups and committed offsets are counted in the state of each
// journal. Groups in memory count their members in the quota itself, and release them when they leave the memory.
const (
	groupOverhead  = 2 << 10 // a group, besides its id and its members
	memberOverhead = 512     // a member, besides its metadata
	offsetOverhead = 128     // a committed offset, besides its metadata
)

// size returns the bytes that a committed offset counts.
func (o *Offset) size() int64 { return offsetOverhead + int64(len(o.Metadata)) }

// size returns the bytes that a stored group counts.
func (k Key) size() int64 { return groupOverhead + int64(len(k.Group)) }

// usage is the bytes of one journal's stored groups and offsets.
type usage struct {
	accounts *btree.Map[string, int64]
	tenants  *btree.Map[string, int64]
	all      int64
}

func newUsage() usage {
	return usage{accounts: new(btree.Map[string, int64]), tenants: new(btree.Map[string, int64])}
}

func (u *usage) clone() usage {
	return usage{accounts: u.accounts.Copy(), tenants: u.tenants.Copy(), all: u.all}
}

// add adds bytes of an account; n may be negative. The account "" is not known.
func (u *usage) add(tenant, account string, n int64) {
	if n == 0 {
		return
	}
	u.all += n
	addBytes(u.tenants, tenant, n)
	if account != "" {
		addBytes(u.accounts, account, n)
	}
}

func addBytes(counts *btree.Map[string, int64], key string, n int64) {
	old, _ := counts.Get(key)
	if old+n == 0 {
		counts.Delete(key)
		return
	}
	counts.Set(key, old+n)
}

// CountState implements quota.StateCounter.
func (c *Coordinator) CountState(a quota.Account) (account, tenant, all int64) {
	for i := range c.shards {
		s := c.shards[i].Load()
		if s == nil {
			continue
		}
		u := &s.view().usage
		if a.Name != "" {
			n, _ := u.accounts.Get(a.Name)
			account += n
		}
		n, _ := u.tenants.Get(a.Tenant)
		tenant, all = tenant+n, all+u.all
	}
	return account, tenant, all
}

// EachAccountState implements quota.StateCounter.
func (c *Coordinator) EachAccountState(visit func(account string, bytes int64)) {
	for _, s := range c.ownedShards() {
		s.view().usage.accounts.Scan(func(account string, n int64) bool { visit(account, n); return true })
	}
}

// EachTenantState implements quota.StateCounter.
func (c *Coordinator) EachTenantState(visit func(tenant string, bytes int64)) {
	for _, s := range c.ownedShards() {
		s.view().usage.tenants.Scan(func(tenant string, n int64) bool { visit(tenant, n); return true })
	}
}

// growth returns how many bytes a commit adds to what is stored. An offset that replaces one counts its
// difference only, so that groups that exist above a quota go on.
func (s *state) growth(key Key, offsets map[Partition]Offset) (n int64) {
	if _, ok := s.groups.Get(key.path()); !ok {
		n += key.size()
	}
	for at, o := range offsets {
		n += o.size()
		if old, ok := s.offsets.Get(offsetItem{key: key, at: at}); ok {
			n -= old.size()
		}
	}
	return n
}

// reserve reserves bytes of an account until the caller calls release, which it does when they are counted
// otherwise or will not be used.
func (c *Coordinator) reserve(tenant, account string, n int64) (release func(), err error) {
	payer := quota.Account{Tenant: tenant, Name: account}
	if err := c.opts.Quota.ReserveState(payer, n); err != nil {
		return nil, err
	}
	return func() { c.opts.Quota.AddState(payer, -max(n, 0)) }, nil
}

// reserveMemberLocked is reserve for a member. Clients do not retry ErrGroupFull.
func (g *group) reserveMemberLocked(account string, n int) (release func(), err error) {
	if len(g.charges) == 0 {
		n += 2 * groupOverhead // in memory and, later, in the journal
	}
	if release, err = g.shard.c.reserve(g.key.Tenant, account, int64(n)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGroupFull, err)
	}
	return release, nil
}

// chargeLocked counts n bytes of an account in memory; n may be negative. The first account also pays for the group.
func (g *group) chargeLocked(account string, n int) {
	if g.uncharged || n == 0 {
		return
	}
	if len(g.charges) == 0 {
		g.charges = make(map[string]int)
		g.addChargeLocked(account, groupOverhead)
	}
	g.payer = cmp.Or(g.payer, account)
	g.addChargeLocked(account, n)
}

func (g *group) addChargeLocked(account string, n int) {
	g.charges[account] += n
	g.shard.c.opts.Quota.AddState(quota.Account{Tenant: g.key.Tenant, Name: account}, int64(n))
}

// releaseChargesLocked releases everything that the group counts, because it leaves the memory.
func (g *group) releaseChargesLocked() {
	if g.uncharged {
		return
	}
	g.uncharged = true
	for account, n := range g.charges {
		g.shard.c.opts.Quota.AddState(quota.Account{Tenant: g.key.Tenant, Name: account}, int64(-n))
	}
	g.charges = nil
	bytes := g.memberBytes
	if g.consumers != nil {
		bytes += g.consumers.bytes
	}
	g.shard.c.memberBytes.Add(int64(-bytes))
}

// reserveAssignmentsLocked reserves the bytes of the assignments that a leader sends.
func (g *group) reserveAssignmentsLocked(account string, assignments map[string][]byte) (release func(), err error) {
	n := -g.assignmentBytes
	for _, assignment := range assignments {
		n += len(assignment)
	}
	return g.reserveMemberLocked(account, n)
}

// chargeAssignmentsLocked counts the assignments of the members for the account of the leader that sent them,
// instead of the assignments before.
func (g *group) chargeAssignmentsLocked(account string, n int) {
	g.chargeLocked(g.assignmentPayer, -g.assignmentBytes)
	g.assignmentPayer, g.assignmentBytes = account, n
	g.chargeLocked(account, n)
}

// bytes returns the bytes that a classic member counts.
func (m *member) bytes() int {
	return memberOverhead + len(m.id) + len(m.instance) + len(m.client) + len(m.host) + size(m.protocols) +
		m.owner.size()
}

// bytes returns the bytes that a member of a group with the consumer protocol counts.
func (m *consumer) bytes() int {
	return memberOverhead + len(m.id) + len(m.instance) + len(m.client) + len(m.host) + m.size()
}

// addPendingLocked adds a member id that a client has to join again with.
func (g *group) addPendingLocked(id string, p pendingMember) {
	g.pending[id] = p
	g.chargeLocked(p.principal, memberOverhead+len(id))
}

// removePendingLocked removes a member id, and reports whether the group had it.
func (g *group) removePendingLocked(id string) bool {
	p, ok := g.pending[id]
	if ok {
		delete(g.pending, id)
		g.chargeLocked(p.principal, -memberOverhead-len(id))
	}
	return ok
}

func (g *group) clearPendingLocked() {
	for id := range g.pending {
		g.removePendingLocked(id)
	}
}
