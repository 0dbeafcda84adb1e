package kafkaapi

import "github.com/prometheus/client_golang/prometheus"

// collector collects the metrics of a Server at each scrape.
type collector struct {
	server *Server

	connections, clients, refused, turnedAway, throttled, sessions, shares, memory *prometheus.Desc
	requests, in, out, seconds                                                     *prometheus.Desc
}

// NewCollector returns a collector of the server's connections and requests.
func NewCollector(server *Server) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_stream_"+name, help, labels, nil)
	}
	return &collector{
		server:      server,
		connections: desc("connections", "Connections of the Kafka protocol, by listener.", "listener"),
		clients:     desc("clients", "Connections of the Kafka protocol, by client software.", "software", "version"),
		refused: desc("refused_total",
			"Clients of the Kafka protocol that were rejected because of missing or wrong credentials."),
		turnedAway: desc("turned_away_total",
			"Connections of the Kafka protocol that were rejected or closed because there were too many."),
		throttled: desc("throttled_total", "Throttled responses of the Kafka protocol."),
		sessions:  desc("fetch_sessions", "Fetch sessions of the Kafka protocol."),
		shares:    desc("share_sessions", "Share sessions of the Kafka protocol."),
		memory: desc("memory_bytes",
			"Memory of requests and responses of the Kafka protocol, which stream.memory limits."),
		requests: desc("requests_total", "Completed requests of the Kafka protocol, by API.", "api"),
		in:       desc("request_bytes_total", "Bytes of these requests.", "api"),
		out:      desc("response_bytes_total", "Bytes of their responses.", "api"),
		seconds: desc("request_seconds_total",
			"Time from receiving these requests to sending their responses, including waits.", "api"),
	}
}

// Describe implements prometheus.Collector. It sends no descriptors, because the series
// depend on the clients. So the collector is unchecked.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	stats := c.server.Stats()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	counter := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...)
	}
	for listener, n := range stats.Connections {
		gauge(c.connections, float64(n), listener)
	}
	for client, n := range stats.Clients {
		gauge(c.clients, float64(n), client.Name, client.Version)
	}
	gauge(c.sessions, float64(stats.FetchSessions))
	gauge(c.shares, float64(stats.ShareSessions))
	gauge(c.memory, float64(stats.Memory))
	counter(c.refused, float64(stats.AuthFailures))
	counter(c.turnedAway, float64(stats.RejectedConnections))
	counter(c.throttled, float64(stats.Throttled))
	for api, r := range stats.Requests {
		counter(c.requests, float64(r.Count), api)
		counter(c.in, float64(r.BytesIn), api)
		counter(c.out, float64(r.BytesOut), api)
		counter(c.seconds, r.Time.Seconds(), api)
	}
}
