package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// TopicStats is how a topic stands. Counts and rates of messages and bytes are
// since the server's start and of the last minute or so.
type TopicStats struct {
	Partitions  int       // 0 of a topic without
	Created     time.Time // zero when not known
	LastPublish time.Time // zero when nothing was published

	StorageBytes      int64
	MessagesIn        int64
	MessagesOut       int64
	MessageRateIn     float64
	MessageRateOut    float64
	Subscriptions     map[string]SubscriptionStats
	Groups            map[string]GroupStats
	Deduplicates      bool
	AverageMessage    float64 // bytes
	BytesPerSecondIn  float64
	BytesPerSecondOut float64
}

// SubscriptionStats is how a subscription stands.
type SubscriptionStats struct {
	// Backlog counts messages that are not acknowledged, those on lease (Leased)
	// and those that wait for their time (Delayed) among them.
	Backlog      int64             `json:"msgBacklog"`
	BacklogBytes int64             `json:"backlogSize"`
	Leased       int64             `json:"unackedMessages"`
	Delayed      int64             `json:"msgDelayed"`
	Redelivered  int64             `json:"redelivered"`
	Waiting      int               `json:"waitingConsumers"`
	RateOut      float64           `json:"msgRateOut"`
	AckRate      float64           `json:"messageAckRate"`
	Properties   map[string]string `json:"subscriptionProperties"`
}

// GroupStats is how a consumer group of the stream protocol stands with a topic.
type GroupStats struct {
	State   string `json:"state"`
	Members int    `json:"members"`
	Lag     int64  `json:"lag"`
}

// wireStats are both kinds of statistics.
type wireStats struct {
	StorageSize    int64                        `json:"storageSize"`
	MsgInCounter   int64                        `json:"msgInCounter"`
	MsgOutCounter  int64                        `json:"msgOutCounter"`
	MsgRateIn      float64                      `json:"msgRateIn"`
	MsgRateOut     float64                      `json:"msgRateOut"`
	ThroughputIn   float64                      `json:"msgThroughputIn"`
	ThroughputOut  float64                      `json:"msgThroughputOut"`
	AverageMsgSize float64                      `json:"averageMsgSize"`
	Subscriptions  map[string]SubscriptionStats `json:"subscriptions"`
	Groups         map[string]GroupStats        `json:"groups"`
	Deduplication  string                       `json:"deduplicationStatus"`
	Created        int64                        `json:"topicCreationTimeStamp"`
	LastPublish    int64                        `json:"lastPublishTimestamp"`
}

// Stats describes the topic with its subscriptions.
func (t *Topic) Stats(ctx context.Context) (*TopicStats, error) {
	partitions, err := t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	path, query := t.admin("/stats"), url.Values(nil)
	if partitions > 0 {
		path, query = t.admin("/partitioned-stats"), url.Values{"perPartition": {"false"}}
	}
	var w wireStats
	if err := t.call(ctx, http.MethodGet, path, query, nil, &w); err != nil {
		return nil, err
	}
	return &TopicStats{
		Partitions: partitions, Created: millisTime(w.Created), LastPublish: millisTime(w.LastPublish),
		StorageBytes: w.StorageSize, MessagesIn: w.MsgInCounter, MessagesOut: w.MsgOutCounter,
		MessageRateIn: w.MsgRateIn, MessageRateOut: w.MsgRateOut, Subscriptions: w.Subscriptions, Groups: w.Groups,
		Deduplicates: w.Deduplication == "Enabled", AverageMessage: w.AverageMsgSize,
		BytesPerSecondIn: w.ThroughputIn, BytesPerSecondOut: w.ThroughputOut,
	}, nil
}

func millisTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
