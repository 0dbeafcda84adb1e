package messagecmd

import (
	"time"

	"freshet.dev/client"
)

// The forms of -o json. They have the names of 'topic describe', not those of the APIs.

// subscriptionEntry is a subscription in a list.
type subscriptionEntry struct {
	Name               string `json:"name"`
	*subscriptionStats        // nil if the caller may not see them
}

// subscriptionStats are the statistics of a subscription.
type subscriptionStats struct {
	topicSubscription
	Redelivered int64             `json:"redelivered"`
	RateOut     float64           `json:"messageRateOut"`
	AckRate     float64           `json:"ackRate"`
	Properties  map[string]string `json:"properties,omitempty"`
}

// subscriptionFilter is the filter of a subscription, and what it did since the start of the server.
type subscriptionFilter struct {
	Expression string `json:"expression"`
	Selected   int64  `json:"selected"`
	PassedOver int64  `json:"passedOver"`
	Failed     int64  `json:"failed"` // and were delivered
}

func newSubscriptionFilter(s *client.SubscriptionStats) *subscriptionFilter {
	if s.Filter == "" {
		return nil
	}
	return &subscriptionFilter{s.Filter, s.FilterSelected, s.FilterPassedOver, s.FilterFailed}
}

func newTopicSubscription(s *client.SubscriptionStats) topicSubscription {
	return topicSubscription{
		s.Backlog, s.BacklogBytes, s.Leased, s.Delayed, s.Waiting, newSubscriptionFilter(s),
	}
}

func newSubscriptionEntry(name string, s client.SubscriptionStats) subscriptionEntry {
	return subscriptionEntry{name, &subscriptionStats{
		topicSubscription: newTopicSubscription(&s),
		Redelivered:       s.Redelivered, RateOut: s.RateOut, AckRate: s.AckRate, Properties: s.Properties,
	}}
}

// groupEntry is a consumer group in a list.
type groupEntry struct {
	Name         string `json:"name"`
	Tenant       string `json:"tenant"`
	State        string `json:"state"`
	ProtocolType string `json:"protocolType"`
}

// groupDescription is a consumer group with its members and offsets.
type groupDescription struct {
	groupEntry
	Protocol   string        `json:"protocol"`
	Generation int           `json:"generation"`
	Leader     string        `json:"leader"`
	Lag        int64         `json:"lag"`
	Members    []groupMember `json:"members"`
	Offsets    []groupOffset `json:"offsets"`
}

type groupMember struct {
	ID         string `json:"id"`
	InstanceID string `json:"instanceId,omitempty"`
	ClientID   string `json:"clientId"`
	ClientHost string `json:"clientHost"`
}

type groupOffset struct {
	Topic     string    `json:"topic"`
	Partition int       `json:"partition"`
	Offset    int64     `json:"offset"`
	EndOffset int64     `json:"endOffset"`
	Lag       int64     `json:"lag"`
	Metadata  string    `json:"metadata,omitempty"`
	Committed time.Time `json:"committed"`
}

func newGroupDescription(info *client.GroupInfo) groupDescription {
	d := groupDescription{
		groupEntry: groupEntry{info.Name, info.Tenant, info.State, info.ProtocolType},
		Protocol:   info.Protocol, Generation: info.Generation, Leader: info.Leader, Lag: info.Lag,
		Members: []groupMember{}, Offsets: []groupOffset{},
	}
	for _, m := range info.Members {
		d.Members = append(d.Members, groupMember(m))
	}
	for i := range info.Offsets {
		o := &info.Offsets[i]
		d.Offsets = append(d.Offsets, groupOffset{
			o.Topic, o.Partition, o.Offset, o.EndOffset, o.Lag, o.Metadata, o.Committed().UTC(),
		})
	}
	return d
}
