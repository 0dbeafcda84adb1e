package clustermetrics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane"
	"freshet/internal/storage/engine"
)

// Maximum number of series for the consumer groups of one cluster.
const (
	maxGroupSeries     = 2_000  // for each group and topic
	maxPartitionSeries = 10_000 // for each partition, if metrics.topics is set
)

// groupMetrics are the metrics of consumer groups.
type groupMetrics struct {
	groups, members, lag, partitionLag, leftOut *prometheus.Desc
}

func newGroupMetrics() groupMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return groupMetrics{
		groups: desc("groups", "Consumer groups of a cluster, by protocol and whether they have members.",
			"organization", "cluster", "type", "active"),
		members: desc("group_members", "Members of a consumer group.", "organization", "cluster", "tenant", "group"),
		lag: desc("group_lag_messages", "Messages of a topic after the committed offsets of a consumer group, "+
			"summed over the partitions with a committed offset.",
			"organization", "cluster", "tenant", "group", "topic"),
		partitionLag: desc("group_partition_lag_messages", "Messages of a partition after the committed offset of a "+
			"consumer group.", "organization", "cluster", "tenant", "group", "topic", "partition"),
		leftOut: desc("groups_left_out", "Consumer groups without series, because there are too many.",
			"organization", "cluster"),
	}
}

// collect collects the metrics of a cluster's consumer groups, if their coordinator is
// open.
func (m *groupMetrics) collect(ch chan<- prometheus.Metric, cluster *dataplane.Cluster, byPartition bool) {
	coordinator := cluster.OpenGroups()
	if coordinator == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), usageTimeout)
	defer cancel()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value,
			append([]string{cluster.Organization, cluster.Name}, labels...)...)
	}
	var all []groups.GroupUsage
	counts, total := make(map[[2]string]int), 0
	coordinator.Walk(func(use groups.GroupUsage) bool {
		counts[[2]string{use.Type, strconv.FormatBool(use.Members > 0)}]++
		total++
		if utf8.ValidString(use.Key.Group) { // a label must be valid UTF-8
			all = append(all, use)
		}
		return true
	})
	for labels, n := range counts {
		gauge(m.groups, float64(n), labels[0], labels[1])
	}
	// Groups with members come first, because they are in use.
	slices.SortFunc(all, func(a, b groups.GroupUsage) int {
		return cmp.Or(cmp.Compare(b.Members, a.Members), cmp.Compare(a.Key.Tenant, b.Key.Tenant),
			cmp.Compare(a.Key.Group, b.Key.Group))
	})
	s := lagSeries{
		metrics: m, cluster: cluster, gauge: gauge, extents: make(map[engine.TopicID]*measured),
		left: maxGroupSeries,
	}
	if byPartition {
		s.leftPartitions = maxPartitionSeries
	}
	shown := 0
	for i := range all {
		if s.left <= 0 || ctx.Err() != nil {
			break
		}
		shown++
		gauge(m.members, float64(all[i].Members), all[i].Key.Tenant, all[i].Key.Group)
		s.add(ctx, coordinator, all[i].Key)
	}
	gauge(m.leftOut, float64(total-shown))
}

// lagSeries creates the series of lags.
type lagSeries struct {
	metrics              *groupMetrics
	cluster              *dataplane.Cluster
	gauge                func(*prometheus.Desc, float64, ...string)
	extents              map[engine.TopicID]*measured
	left, leftPartitions int // number of series that may still be created
}

// measured is a topic with the extents of its partitions; the extents of a deleted topic are
// nil.
type measured struct {
	topic   *messaging.KafkaTopic
	extents []engine.Extent
}

// add creates the series of one group.
func (s *lagSeries) add(ctx context.Context, coordinator *groups.Coordinator, key groups.Key) {
	committed, err := coordinator.Committed(key)
	if err != nil {
		return // another member coordinates the group now, and reports it
	}
	lags := make(map[engine.TopicID]uint64)
	committed.Each(func(at groups.Partition, o groups.Offset) {
		if _, known := lags[at.Topic]; !known && len(lags) >= s.left {
			return
		}
		m := s.measure(ctx, at.Topic)
		if int(at.Partition) >= len(m.extents) {
			return
		}
		extent := m.extents[at.Partition]
		lag := groups.Lag(extent.First, extent.Next, o.Offset)
		lags[at.Topic] += lag
		if s.leftPartitions > 0 {
			s.leftPartitions--
			s.gauge(s.metrics.partitionLag, float64(lag), key.Tenant, key.Group, m.topic.Name().ListName(),
				strconv.Itoa(int(at.Partition)))
		}
	})
	s.left -= max(len(lags), 1)
	for topic, lag := range lags {
		s.gauge(s.metrics.lag, float64(lag), key.Tenant, key.Group, s.extents[topic].topic.Name().ListName())
	}
}

func (s *lagSeries) measure(ctx context.Context, id engine.TopicID) *measured {
	if known := s.extents[id]; known != nil {
		return known
	}
	m := &measured{}
	s.extents[id] = m
	topic, err := s.cluster.Broker.Kafka.KafkaTopicByID(ctx, uint64(id))
	if err != nil {
		return m // deleted
	}
	if m.extents, err = topic.Extents(ctx); err != nil {
		m.extents = nil
	}
	m.topic = topic
	return m
}
