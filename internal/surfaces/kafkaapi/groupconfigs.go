package kafkaapi

import (
	"context"
	"strconv"

	"freshet/internal/broker/messaging"
)

// groupConfigs returns the heartbeat interval and session timeout of members with the consumer
// protocol. They are the same for all groups, existing or not, and cannot be changed.
func (c *call) groupConfigs(ctx context.Context, group string) ([]messaging.KafkaConfig, error) {
	if err := c.authorizeGroup(ctx, group, describeGroup); err != nil {
		return nil, err
	}
	heartbeat, session := c.coordinator().ConsumerTimeouts()
	all := []messaging.KafkaConfig{
		{
			Name: "consumer.heartbeat.interval.ms", Value: strconv.FormatInt(heartbeat.Milliseconds(), 10),
			Kind: messaging.ConfigInt, Doc: "Heartbeat interval of members.",
		},
		{
			Name: "consumer.session.timeout.ms", Value: strconv.FormatInt(session.Milliseconds(), 10),
			Kind: messaging.ConfigInt, Doc: "Session timeout of members.",
		},
	}
	for i := range all {
		all[i].ReadOnly, all[i].Default = true, all[i].Value
	}
	return all, nil
}
