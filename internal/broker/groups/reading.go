package groups

// Bounds are the first offset of a partition and the one behind its last.
type Bounds struct {
	First uint64 `json:"first"`
	Next  uint64 `json:"next"`
}

// ReadingQuery asks which groups of a tenant have committed offsets of some partitions of
// a topic, from one on.
type ReadingQuery struct {
	Tenant     string   `json:"tenant"`
	Topic      uint64   `json:"topic"`
	From       int32    `json:"from"`
	Partitions []Bounds `json:"partitions"`
}

// Reading is a group that has, and how many messages it is behind on all of them.
type Reading struct {
	State   string `json:"state"`
	Members int    `json:"members"`
	Lag     uint64 `json:"lag"`
}

// Reading lists those of the groups that are coordinated here, by name.
func (c *Coordinator) Reading(q *ReadingQuery) map[string]*Reading {
	list := make(map[string]*Reading)
	c.Readers(q.Tenant, q.Topic, func(key Key, at Partition, o Offset) {
		i := int(at.Partition - q.From)
		if i < 0 || i >= len(q.Partitions) {
			return
		}
		g := list[key.Group]
		if g == nil {
			g = &Reading{}
			if d, err := c.Describe(key); err == nil {
				g.State, g.Members = d.State, len(d.Members)
			}
			list[key.Group] = g
		}
		g.Lag += Lag(q.Partitions[i].First, q.Partitions[i].Next, o.Offset)
	})
	return list
}
