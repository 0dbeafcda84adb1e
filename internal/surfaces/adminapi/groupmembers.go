package adminapi

import (
	"maps"
	"slices"

	"freshet/internal/broker/groups"
)

// addMembers shows the members of a group and what they are assigned.
func (c *call) addMembers(body *groupBody, d *groups.Description) {
	whole := c.Authorize(seeingGroups...) == nil // in the tenant
	for i := range d.Members {
		m := &d.Members[i]
		row := memberBody{MemberID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost}
		switch {
		case m.Consumer != nil:
			row.Assignment = c.assigned(m.Consumer.Assigned)
		case whole && d.ProtocolType == "consumer" && len(m.Assignment) > 0:
			// Names are those that the members say, of whatever namespace they are in:
			// nobody can tell what one has to be allowed to know them.
			if topics, ok := groups.ConsumerAssignment(m.Assignment); ok {
				row.Assignment = []assignedBody{}
				for _, name := range slices.Sorted(maps.Keys(topics)) {
					row.Assignment = append(row.Assignment,
						assignedBody{name, slices.Sorted(slices.Values(topics[name]))})
				}
			}
		}
		body.Members = append(body.Members, row)
	}
}

// assigned lists partitions, which are in order, of topics that the caller may see.
func (c *call) assigned(parts []groups.Partition) []assignedBody {
	rows, shown := []assignedBody{}, false
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			topic, err := c.Broker().StreamTopicByID(c.R.Context(), uint64(p.Topic))
			if shown = err == nil && c.seesTopic(topic.Name(), c.Group); shown {
				rows = append(rows, assignedBody{TopicName: topic.Name().ListName()})
			}
		}
		if shown {
			row := &rows[len(rows)-1]
			row.Partitions = append(row.Partitions, p.Partition)
		}
	}
	return rows
}
