package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// TopicStats are the statistics of a topic. Counts are since the server's start, rates over
// about the last minute.
type TopicStats struct {
	Partitions  int       // 0 for a topic without partitions
	Created     time.Time // zero if it is unknown
	LastPublish time.Time // zero if nothing was published

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

// SubscriptionStats are the statistics of a subscription.
type SubscriptionStats struct {
	// Backlog is the number of messages that are not acknowledged, including leased (Leased)
	// and delayed (Delayed) ones.
	Backlog      int64             `json:"msgBacklog"`
	BacklogBytes int64             `json:"backlogSize"`
	Leased       int64             `json:"unackedMessages"`
	Delayed      int64             `json:"msgDelayed"`
	Redelivered  int64             `json:"redelivered"`
	Waiting      int               `json:"waitingConsumers"`
	RateOut      float64           `json:"msgRateOut"`
	AckRate      float64           `json:"messageAckRate"`
	Properties   map[string]string `json:"subscriptionProperties"`

	// Filter is the expression that selects the messages; "" for all. FilterSelected messages were
	// delivered since the server's start, FilterFailed of them because the expression failed, and
	// FilterPassedOver were acknowledged without a delivery.
	Filter           string `json:"filter"`
	FilterSelected   int64  `json:"filterAcceptedMsgCount"`
	FilterPassedOver int64  `json:"filterRejectedMsgCount"`
	FilterFailed     int64  `json:"filterFailedMsgCount"`
}

// GroupStats are the statistics of a consumer group of the Kafka protocol on a topic.
type GroupStats struct {
	State   string `json:"state"`
	Members int    `json:"members"`
	Lag     int64  `json:"lag"`
}

// wireStats are the statistics of a topic with or without partitions in JSON.
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

// Stats returns the statistics of the topic and its subscriptions.
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
