package kafkaapi

import (
	"strconv"

	"freshet/internal/broker/messaging"
)

// groupConfigs is what the coordinator demands of the members of a group of the
// consumer protocol. It is the same for all groups, whether they exist or not, and
// cannot be changed.
func (c *call) groupConfigs(group string) ([]messaging.StreamConfig, error) {
	if err := c.mayGroup(group, permitConsume, permitSubscriptions); err != nil {
		return nil, err
	}
	heartbeat, session := c.coordinator().ConsumerTimes()
	all := []messaging.StreamConfig{
		{
			Name: "consumer.heartbeat.interval.ms", Value: strconv.FormatInt(heartbeat.Milliseconds(), 10),
			Kind: messaging.ConfigInt, Doc: "How often members are told to say that they live.",
		},
		{
			Name: "consumer.session.timeout.ms", Value: strconv.FormatInt(session.Milliseconds(), 10),
			Kind: messaging.ConfigInt, Doc: "How long a member may be silent.",
		},
	}
	for i := range all {
		all[i].ReadOnly, all[i].Default = true, all[i].Value
	}
	return all, nil
}
