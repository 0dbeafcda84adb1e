package groups

// The journal records which account pays for a group and for its offsets in records of their own, so that the
// other records are those of older versions. A member's owner pays for the member.

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

// payerRecord returns the record of the account that pays for a group.
func payerRecord(key Key, account string) []byte {
	w := newRecord(recordPayer, key)
	w.Text(account)
	return w.Writer
}

// appendPayer appends the record of the account that pays for a group, if the stored group has none.
func (s *state) appendPayer(records [][]byte, key Key, account string) [][]byte {
	if item, ok := s.groups.Get(key.path()); account == "" || ok && item.account != "" {
		return records
	}
	return append(records, payerRecord(key, account))
}

// applyPayer applies a payerRecord.
func (s *state) applyPayer(key Key, r *reader) {
	account := r.Text()
	if _, ok := s.groups.Get(key.path()); ok && r.Err() == nil {
		s.update(key, func(item *groupItem) { item.account = account })
	}
}
