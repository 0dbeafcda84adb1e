package revision

// Tombstones is a set of the last deletions. It is not safe for concurrent use.
type Tombstones[K comparable] struct {
	revisions map[K]int64
	ring      []K // in the order of deletion; when it is full, the oldest is at next
	limit     int
	next      int
}

// NewTombstones returns an empty set with a limit.
func NewTombstones[K comparable](limit int) *Tombstones[K] {
	return &Tombstones[K]{revisions: make(map[K]int64), limit: limit}
}

// Add records the deletion of a key at a revision. At the limit it drops the oldest deletion.
func (t *Tombstones[K]) Add(key K, revision int64) {
	if revision == 0 || t.limit == 0 {
		return
	}
	known, ok := t.revisions[key]
	t.revisions[key] = max(known, revision)
	switch {
	case ok:
	case len(t.ring) < t.limit:
		t.ring = append(t.ring, key)
	default:
		delete(t.revisions, t.ring[t.next])
		t.ring[t.next] = key
		t.next = (t.next + 1) % t.limit
	}
}

// Cover reports whether a report with this revision is late: its key was deleted after it.
func (t *Tombstones[K]) Cover(key K, revision int64) bool {
	deleted := t.revisions[key]
	return deleted == Forever || (revision != 0 && revision < deleted)
}
