package adminapi

import (
	"maps"
	"slices"

	"freshet/internal/broker/groups"
)

// addMembers adds the members of a group and their assigned partitions.
func (c *call) addMembers(body *groupBody, d *groups.Description) {
	whole := c.Require(seeGroupPermissions...) == nil // the caller may see the groups of the tenant
	for i := range d.Members {
		m := &d.Members[i]
		row := memberBody{MemberID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost}
		switch {
		case m.Consumer != nil:
			row.Assignment = c.assigned(m.Consumer.Assigned)
		case whole && d.ProtocolType == "consumer" && len(m.Assignment) > 0:
			// The members chose these topic names, and they can be of any namespace. So the
			// server cannot authorize them one by one.
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

// assigned lists those partitions whose topic the caller may see. parts are sorted.
func (c *call) assigned(parts []groups.Partition) []assignedBody {
	rows, shown := []assignedBody{}, false
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			topic, err := c.Cluster.Kafka.KafkaTopicByID(c.R.Context(), uint64(p.Topic))
			if shown = err == nil && c.canSeeTopic(topic.Name(), c.Group); shown {
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
