package natsserver

import (
	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the embedded server.
var (
	streamsSeries = prometheus.NewDesc("freshet_nats_streams",
		"Streams of the replicated log that this member stores.", nil, nil)
	ledSeries = prometheus.NewDesc("freshet_nats_streams_led",
		"Streams of the replicated log that this member leads.", nil, nil)
	leaderless = prometheus.NewDesc("freshet_nats_streams_without_leader",
		"Streams that this member stores and whose leader it does not know.", nil, nil)
	storedSeries = prometheus.NewDesc("freshet_nats_stored_bytes",
		"Bytes that the streams use on this member.", nil, nil)
	limitSeries = prometheus.NewDesc("freshet_nats_stored_limit_bytes",
		"Limit for the bytes of the streams on this member.", nil, nil)
	peersSeries = prometheus.NewDesc("freshet_nats_peers",
		"Servers of other members to which this server has a route.", nil, nil)
	healthySeries = prometheus.NewDesc("freshet_nats_healthy",
		"Whether the embedded server serves its streams: 1 or 0.", nil, nil)
	errorsSeries = prometheus.NewDesc("freshet_nats_api_errors_total",
		"JetStream API requests that this member served and that failed.", nil, nil)
	callsSeries = prometheus.NewDesc("freshet_nats_api_requests_total",
		"JetStream API requests that this member served.", nil, nil)
	slowSeries = prometheus.NewDesc("freshet_nats_slow_connections_total",
		"Connections closed because the client read too slowly.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		streamsSeries, ledSeries, leaderless, storedSeries, limitSeries, peersSeries,
		healthySeries, errorsSeries, callsSeries, slowSeries,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It reads the state of this server only.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	healthy := 0.0
	if s.Health() == nil {
		healthy = 1
	}
	gauge(healthySeries, healthy)
	count(slowSeries, float64(s.nats.Load().NumSlowConsumers()))
	gauge(peersSeries, float64(s.peers()))
	info, err := s.nats.Load().Jsz(&server.JSzOptions{})
	if err != nil {
		return // JetStream has stopped, which the healthy series shows
	}
	led, none := 0, 0
	for _, leader := range s.leaders() {
		switch leader {
		case s.nats.Load().Name():
			led++
		case "":
			none++
		}
	}
	gauge(streamsSeries, float64(info.Streams))
	gauge(ledSeries, float64(led))
	gauge(leaderless, float64(none))
	gauge(storedSeries, float64(info.Store))
	gauge(limitSeries, float64(info.Config.MaxStore))
	count(callsSeries, float64(info.API.Total))
	count(errorsSeries, float64(info.API.Errors))
}

// peers returns the number of servers with at least one route to this one.
func (s *Server) peers() int {
	routes, err := s.nats.Load().Routez(&server.RoutezOptions{})
	if err != nil {
		return 0
	}
	names := map[string]struct{}{}
	for _, r := range routes.Routes {
		names[r.RemoteID] = struct{}{}
	}
	return len(names)
}
