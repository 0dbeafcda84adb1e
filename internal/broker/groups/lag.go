package groups

// Bounds are the first and the next offset of a partition.
type Bounds struct {
	First uint64 `json:"first"`
	Next  uint64 `json:"next"`
}

// LagQuery selects the groups of a tenant that have committed offsets for partitions of a
// topic: Partitions are the bounds of the partitions From, From+1 and so on.
type LagQuery struct {
	Tenant     string   `json:"tenant"`
	Topic      uint64   `json:"topic"`
	From       int32    `json:"from"`
	Partitions []Bounds `json:"partitions"`
}

// GroupLag is the state of a selected group and its lag over all selected partitions.
type GroupLag struct {
	State   string `json:"state"`
	Members int    `json:"members"`
	Lag     uint64 `json:"lag"`
	// Reads is what the group reads, for the decision whether a caller may see the group.
	Reads *Reads `json:"reads,omitempty"`
}

// GroupLags returns the selected groups that this coordinator owns, by group id.
func (c *Coordinator) GroupLags(q *LagQuery) map[string]*GroupLag {
	list := make(map[string]*GroupLag)
	c.EachCommittedOffset(q.Tenant, q.Topic, func(key Key, at Partition, o Offset) {
		i := int(at.Partition - q.From)
		if i < 0 || i >= len(q.Partitions) {
			return
		}
		g := list[key.Group]
		if g == nil {
			g = &GroupLag{}
			if d, err := c.Describe(key); err == nil {
				g.State, g.Members, g.Reads = d.State, len(d.Members), &d.Reads
			}
			list[key.Group] = g
		}
		g.Lag += Lag(q.Partitions[i].First, q.Partitions[i].Next, o.Offset)
	})
	return list
}
