package clustermetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane"
)

// usageTimeout is the timeout for collecting the metrics of one cluster.
const usageTimeout = 5 * time.Second

// messagingMetrics are the metrics of clusters and their messages. The cost of collecting
// them grows with the number of topics in use.
type messagingMetrics struct {
	tenants, namespaces, topics, waiting *prometheus.Desc
	leftOut, loaded, used, available     *prometheus.Desc
	damaged, skipped                     *prometheus.Desc
	byNamespace, byTopic                 flowMetrics
}

// flowMetrics are the usage metrics of namespaces, or of topics.
type flowMetrics struct {
	produced, producedBytes, delivered, deliveredBytes, acknowledged, dead, passedOver *prometheus.Desc
	stored, backlog, leased, age                                                       *prometheus.Desc
}

func newMessagingMetrics() *messagingMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, []string{"organization", "cluster"}, nil)
	}
	return &messagingMetrics{
		tenants:    desc("messaging_tenants", "Tenants of a cluster."),
		namespaces: desc("messaging_namespaces", "Namespaces of a cluster."),
		topics:     desc("messaging_topics", "Topics of a cluster, without their partitions."),
		waiting: desc("messaging_waiting_consumers",
			"Long polls and streams of a cluster that are waiting for a message."),
		leftOut: desc("messaging_topics_left_out",
			"Topics without series, because there are too many."),
		loaded:    desc("store_loaded_topics", "Topics of a cluster that are loaded into memory."),
		used:      desc("store_disk_used_bytes", "Disk space used by the files of a cluster."),
		available: desc("store_disk_available_bytes", "Free disk space on the file system of a cluster."),
		damaged: desc("damaged_messages_total",
			"Damaged stored messages of a cluster that were detected since the start."),
		skipped: desc("damaged_messages_skipped_total",
			"Acknowledgements with which subscriptions skipped damaged messages."),
		byNamespace: newFlowMetrics("namespace", "the topics of a namespace", "namespace"),
		byTopic:     newFlowMetrics("topic", "a topic", "namespace", "topic"),
	}
}

func newFlowMetrics(prefix, of string, labels ...string) flowMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+prefix+"_"+name, help,
			append([]string{"organization", "cluster"}, labels...), nil)
	}
	return flowMetrics{
		produced:      desc("produced_messages_total", "Messages produced to "+of+", without dropped duplicates."),
		producedBytes: desc("produced_bytes_total", "Payload bytes produced to "+of+"."),
		delivered: desc("delivered_messages_total", "Messages that subscriptions of "+of+
			" delivered to consumers, including redeliveries."),
		deliveredBytes: desc("delivered_bytes_total", "Payload bytes that subscriptions of "+of+
			" delivered to consumers."),
		acknowledged: desc("acknowledgements_total", "Acknowledgements to subscriptions of "+of+
			"; a cumulative one counts once."),
		dead: desc("dead_letters_total", "Messages moved from "+of+" to a dead letter topic."),
		passedOver: desc("passed_over_messages_total", "Messages of "+of+
			" that the filters of subscriptions passed over."),
		stored: desc("stored_bytes", "Bytes of stored messages of "+of+"."),
		backlog: desc("backlog_messages",
			"Messages without an acknowledgement, summed over the subscriptions of "+of+"."),
		leased: desc("leased_messages", "Messages of "+of+" that are leased to consumers."),
		age: desc("oldest_unacknowledged_age_seconds", "Age of the oldest message in a backlog of "+of+
			"; 0 without a backlog."),
	}
}

// collect collects the metrics of one cluster.
func (m *messagingMetrics) collect(ch chan<- prometheus.Metric, cluster *dataplane.Cluster, byTopic bool) {
	ctx, cancel := context.WithTimeout(context.Background(), usageTimeout)
	defer cancel()
	gauge := func(desc *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, cluster.Organization, cluster.Name)
	}
	found, skipped := cluster.Engine.DamagedMessages()
	for desc, n := range map[*prometheus.Desc]int64{m.damaged: found, m.skipped: skipped} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n),
			cluster.Organization, cluster.Name)
	}
	disk := cluster.Engine.Disk()
	gauge(m.loaded, float64(disk.Loaded))
	for desc, value := range map[*prometheus.Desc]int64{m.used: disk.Used, m.available: disk.Available} {
		if value >= 0 {
			gauge(desc, float64(value))
		}
	}
	usage, err := cluster.Broker.Statistics.Usage(ctx, byTopic)
	gauge(m.tenants, float64(usage.Tenants))
	gauge(m.namespaces, float64(usage.Namespaces))
	gauge(m.topics, float64(usage.Topics))
	gauge(m.waiting, float64(usage.Waiting))
	if err != nil {
		return // the cluster is closed or has failed, which freshet_clusters reports
	}
	now := time.Now()
	for i := range usage.ByNamespace {
		f := &usage.ByNamespace[i]
		name := "other"
		if f.Name.Name != "" {
			name = f.Name.String()
		}
		m.byNamespace.collect(ch, &f.Counters, &f.Gauges, now, cluster.Organization, cluster.Name, name)
	}
	for i := range usage.ByTopic {
		f := &usage.ByTopic[i]
		m.byTopic.collect(ch, &f.Counters, &f.Gauges, now, cluster.Organization, cluster.Name,
			f.Name.Namespace.String(), f.Name.Local)
	}
	if byTopic {
		gauge(m.leftOut, float64(usage.OmittedTopics))
	}
}

func (m *flowMetrics) collect(ch chan<- prometheus.Metric, c *messaging.Counters, h *messaging.Gauges, now time.Time,
	labels ...string,
) {
	counter := func(desc *prometheus.Desc, value int64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	gauge := func(desc *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	counter(m.produced, c.ProducedMessages)
	counter(m.producedBytes, c.ProducedBytes)
	counter(m.delivered, c.DeliveredMessages)
	counter(m.deliveredBytes, c.DeliveredBytes)
	counter(m.acknowledged, c.Acknowledgements)
	counter(m.dead, c.DeadLetters)
	counter(m.passedOver, c.PassedOver)
	gauge(m.stored, float64(h.Stored))
	gauge(m.backlog, float64(h.Backlog))
	gauge(m.leased, float64(h.Leased))
	age := 0.0
	if h.Oldest != 0 {
		age = max(0, now.Sub(time.UnixMilli(h.Oldest)).Seconds())
	}
	gauge(m.age, age)
}
