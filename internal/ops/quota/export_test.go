package quota

// StateOf returns the bytes of client state of an account in all tenants of the cluster, of a tenant, and of
// all.
func (c *Cluster) StateOf(a Account) (account, tenant, all int64) {
	if c == nil {
		return 0, 0, 0
	}
	c.organization.mu.Lock()
	defer c.organization.mu.Unlock()
	return c.countStateLocked(a)
}
