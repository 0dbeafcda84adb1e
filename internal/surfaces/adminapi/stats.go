package adminapi

import (
	"net/http"
	"strconv"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
)

// statsBody has the fields of Pulsar's TopicStats that apply to this server.
type statsBody struct {
	MsgRateIn        float64 `json:"msgRateIn"`
	MsgThroughputIn  float64 `json:"msgThroughputIn"`
	MsgRateOut       float64 `json:"msgRateOut"`
	MsgThroughputOut float64 `json:"msgThroughputOut"`
	BytesInCounter   int64   `json:"bytesInCounter"`
	MsgInCounter     int64   `json:"msgInCounter"`
	BytesOutCounter  int64   `json:"bytesOutCounter"`
	MsgOutCounter    int64   `json:"msgOutCounter"`
	AverageMsgSize   float64 `json:"averageMsgSize"`
	StorageSize      int64   `json:"storageSize"`
	BacklogSize      int64   `json:"backlogSize"`

	Publishers    []struct{}                       `json:"publishers"`
	Subscriptions map[string]subscriptionStatsBody `json:"subscriptions"`
	Replication   map[string]struct{}              `json:"replication"`

	// Extensions: the consumer groups that read the topic, and whether some may be missing
	// because a coordinator did not respond.
	Groups           map[string]*groups.GroupLag `json:"groups,omitempty"`
	GroupsIncomplete bool                        `json:"groupsIncomplete,omitempty"`

	DeduplicationStatus    string `json:"deduplicationStatus"`
	TopicCreationTimeStamp int64  `json:"topicCreationTimeStamp"`
	LastPublishTimeStamp   int64  `json:"lastPublishTimestamp"`
}

type subscriptionStatsBody struct {
	MsgRateOut          float64           `json:"msgRateOut"`
	MsgThroughputOut    float64           `json:"msgThroughputOut"`
	BytesOutCounter     int64             `json:"bytesOutCounter"`
	MsgOutCounter       int64             `json:"msgOutCounter"`
	MessageAckRate      float64           `json:"messageAckRate"`
	MsgRateRedeliver    float64           `json:"msgRateRedeliver"`
	MsgRateExpired      float64           `json:"msgRateExpired"`
	MsgBacklog          int64             `json:"msgBacklog"`
	MsgBacklogNoDelayed int64             `json:"msgBacklogNoDelayed"`
	MsgDelayed          int64             `json:"msgDelayed"`
	BacklogSize         int64             `json:"backlogSize"`
	UnackedMessages     int64             `json:"unackedMessages"`
	Type                string            `json:"type"`
	Consumers           []struct{}        `json:"consumers"`
	Waiting             int               `json:"waitingConsumers"` // an extension
	Redelivered         uint64            `json:"redelivered"`      // an extension
	IsDurable           bool              `json:"isDurable"`
	IsReplicated        bool              `json:"isReplicated"`
	Properties          map[string]string `json:"subscriptionProperties"`

	// Of the subscription's filter. Filter and FilterFailed are extensions.
	Filter          string `json:"filter,omitempty"`
	FilterProcessed uint64 `json:"filterProcessedMsgCount"`
	FilterAccepted  uint64 `json:"filterAcceptedMsgCount"`
	FilterRejected  uint64 `json:"filterRejectedMsgCount"`
	FilterFailed    uint64 `json:"filterFailedMsgCount"`
}

func renderStats(s *messaging.Stats) statsBody {
	out := statsBody{
		MsgRateIn: s.In.MessageRate, MsgThroughputIn: s.In.ByteRate, MsgInCounter: s.In.Messages,
		BytesInCounter: s.In.Bytes,
		MsgRateOut:     s.Out.MessageRate, MsgThroughputOut: s.Out.ByteRate, MsgOutCounter: s.Out.Messages,
		BytesOutCounter: s.Out.Bytes,
		StorageSize:     s.Bytes(), Publishers: []struct{}{}, Replication: map[string]struct{}{},
		Subscriptions:          make(map[string]subscriptionStatsBody, len(s.Subscriptions)),
		DeduplicationStatus:    "Disabled",
		TopicCreationTimeStamp: s.Topic.Created,
	}
	if s.Deduplicates {
		out.DeduplicationStatus = "Enabled"
	}
	if s.In.Messages > 0 {
		out.AverageMsgSize = float64(s.In.Bytes) / float64(s.In.Messages)
	}
	for i := range s.Partitions {
		out.LastPublishTimeStamp = max(out.LastPublishTimeStamp, s.Partitions[i].LastPublish)
	}
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		out.BacklogSize = max(out.BacklogSize, sub.BacklogBytes)
		out.Subscriptions[sub.Name] = subscriptionStatsBody{
			MsgRateOut: sub.Out.MessageRate, MsgThroughputOut: sub.Out.ByteRate,
			MsgOutCounter: sub.Out.Messages, BytesOutCounter: sub.Out.Bytes, MessageAckRate: sub.Acks.MessageRate,
			MsgBacklog: int64(sub.Backlog), MsgDelayed: int64(sub.Delayed), BacklogSize: sub.BacklogBytes,
			MsgBacklogNoDelayed: int64(sub.Backlog) - int64(min(sub.Delayed, sub.Backlog)),
			UnackedMessages:     int64(sub.Leased), Type: "Shared", Consumers: []struct{}{}, IsDurable: true,
			Waiting: sub.Waiting, Redelivered: sub.Redelivered, Properties: orEmpty(sub.Config.Properties),
			Filter: sub.Config.Filter, FilterProcessed: sub.Filtered.Selected + sub.Filtered.PassedOver,
			FilterAccepted: sub.Filtered.Selected, FilterRejected: sub.Filtered.PassedOver,
			FilterFailed: sub.Filtered.Failed,
		}
	}
	return out
}

func (c *call) topicStats() error {
	s, err := c.Cluster.Statistics.Stats(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	if s.Topic.Partitions > 0 && s.Topic.Partition < 0 {
		// As in Pulsar, a topic with partitions has partitioned-stats only.
		return messaging.ErrNoTopic
	}
	body := renderStats(&s)
	if err := c.addGroups(&body, &s); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, body)
}

func (c *call) partitionedStats() error {
	s, err := c.Cluster.Statistics.Stats(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	if s.Topic.Partitions == 0 {
		return messaging.ErrNoTopic
	}
	out := struct {
		statsBody
		Metadata   map[string]any       `json:"metadata"`
		Partitions map[string]statsBody `json:"partitions"`
	}{renderStats(&s), map[string]any{"partitions": s.Topic.Partitions, "deleted": false}, map[string]statsBody{}}
	if err := c.addGroups(&out.statsBody, &s); err != nil {
		return err
	}
	if c.R.URL.Query().Get("perPartition") != "false" {
		for i := range s.Topic.Partitions {
			one := s.OfPartition(i)
			one.In, one.Out = messaging.Flow{}, messaging.Flow{} // counted for the whole topic only
			out.Partitions[s.Topic.Name.WithPartition(i).String()] = renderStats(&one)
		}
	}
	return c.JSON(http.StatusOK, out)
}

// internalStats shows a partition as one ledger.
func (c *call) internalStats() error {
	s, err := c.Cluster.Statistics.Stats(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	if s.Topic.Partitions > 0 && s.Topic.Partition < 0 {
		return messaging.ErrPartitioned
	}
	p := s.Partitions[0]
	retained := int64(p.Next - p.First)
	state := "LedgerOpened"
	if s.Topic.Terminated {
		state = "Terminated"
	}
	position := func(entry int64) string {
		return strconv.FormatUint(s.Topic.ID, 10) + ":" + strconv.FormatInt(entry, 10)
	}
	cursors := make(map[string]any, len(s.Subscriptions))
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		cursors[sub.Name] = map[string]any{
			"markDeletePosition":                       position(int64(sub.Cursors[0].Floor) - 1),
			"readPosition":                             position(int64(sub.Cursors[0].Floor)),
			"individuallyDeletedMessages":              "[]",
			"totalNonContiguousDeletedMessagesRange":   0,
			"messagesConsumedCounter":                  int64(sub.Cursors[0].Floor + sub.Cursors[0].Acked),
			"numberOfEntriesSinceFirstNotAckedMessage": int64(p.Next - min(sub.Cursors[0].Floor, p.Next)),
			"state":      "Open",
			"active":     true,
			"properties": map[string]any{},
		}
	}
	return c.JSON(http.StatusOK, map[string]any{
		"entriesAddedCounter": int64(p.Next), "numberOfEntries": retained, "totalSize": p.Bytes,
		"currentLedgerEntries": retained, "currentLedgerSize": p.Bytes, "waitingCursorsCount": 0,
		"pendingAddEntriesCount": 0,
		"lastConfirmedEntry":     position(int64(p.Next) - 1), "state": state,
		"ledgers": []any{map[string]any{
			"ledgerId": s.Topic.ID, "entries": retained, "size": p.Bytes, "offloaded": false,
			"underReplicated": false,
		}},
		"cursors": cursors, "schemaLedgers": []any{},
		"compactedLedger": map[string]any{
			"ledgerId": -1, "entries": -1, "size": -1, "offloaded": false,
			"underReplicated": false,
		},
	})
}

// kafkaTopic is a topic as the topic list shows it
// (docs/spec/messages.md#topic-list).
type kafkaTopic struct {
	Kind            string `json:"kind"`
	TopicName       string `json:"topic_name"`
	IsInternal      bool   `json:"is_internal"`
	PartitionsCount int32  `json:"partitions_count"`
}

func renderKafkaTopic(name names.Topic, partitions int32) kafkaTopic {
	// To Kafka clients, a topic that is not partitioned has one partition.
	return kafkaTopic{"StreamTopic", name.ListName(), name.Internal(), max(partitions, 1)}
}
