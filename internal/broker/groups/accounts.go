package groups

// The journal records which account pays for a group, its members and its offsets in records of their own, so
// that the other records are those of older versions.

// offsetsRecord returns the record of offsets that an account commits.
func offsetsRecord(key Key, account string, n int) *writer {
	kind := recordAccountOffsets
	if account == "" {
		kind = recordOffsets
	}
	w := newRecord(kind, key)
	if account != "" {
		w.Text(account)
	}
	w.Uvarint(uint64(n))
	return w
}

// memberAccount is the account of a member.
type memberAccount struct{ member, account string }

// accountsRecord returns the record of the accounts of a group and of its members.
func accountsRecord(key Key, account string, members []memberAccount) []byte {
	w := newRecord(recordAccounts, key)
	w.Text(account)
	w.Uvarint(uint64(len(members)))
	for _, m := range members {
		w.Text(m.member)
		w.Text(m.account)
	}
	return w.Writer
}

// appendAccounts appends the record of accounts, if any, to the records of a group. account pays for the group
// unless the stored group has one.
func (s *state) appendAccounts(records [][]byte, key Key, account string, members []memberAccount) [][]byte {
	if item, ok := s.groups.Get(key.path()); ok && item.account != "" {
		account = item.account
	}
	if account == "" && len(members) == 0 {
		return records
	}
	return append(records, accountsRecord(key, account, members))
}

func (g *generation) accounts() (all []memberAccount) {
	for i := range g.members {
		if m := &g.members[i]; m.account != "" {
			all = append(all, memberAccount{m.id, m.account})
		}
	}
	return all
}

func consumerAccounts(members []*storedConsumer) (all []memberAccount) {
	for _, m := range members {
		if m.account != "" {
			all = append(all, memberAccount{m.id, m.account})
		}
	}
	return all
}

// applyAccounts applies a record of accounts.
func (s *state) applyAccounts(key Key, r *reader) {
	account := r.Text()
	accounts := make(map[string]string)
	for range r.Count() {
		member := r.Text()
		accounts[member] = r.Text()
	}
	item, ok := s.groups.Get(key.path())
	if !ok || r.Err() != nil {
		return
	}
	if len(accounts) > 0 && len(item.stored.members) > 0 {
		g := *item.stored
		g.members = append([]storedMember(nil), g.members...)
		for i := range g.members {
			if account, ok := accounts[g.members[i].id]; ok {
				g.members[i].account = account
			}
		}
		item.stored = &g
	}
	s.update(key, func(i *groupItem) { i.account, i.stored = account, item.stored })
	for member, account := range accounts {
		if c, ok := s.consumers.Get(consumerItem{key: key, id: member}); ok {
			changed := *c.storedConsumer
			changed.account = account
			s.consumers.Set(consumerItem{key, member, &changed})
		}
	}
}
