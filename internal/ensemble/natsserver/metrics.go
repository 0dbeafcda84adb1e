package natsserver

import (
	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
)

// What is measured of the embedded server.
var (
	streamsSeries = prometheus.NewDesc("freshet_nats_streams",
		"Streams of the replicated log that this member keeps.", nil, nil)
	ledSeries = prometheus.NewDesc("freshet_nats_streams_led",
		"Streams of the replicated log that this member leads.", nil, nil)
	leaderless = prometheus.NewDesc("freshet_nats_streams_without_leader",
		"Streams that this member keeps and knows no leader of.", nil, nil)
	storedSeries = prometheus.NewDesc("freshet_nats_stored_bytes",
		"Bytes that the streams take on this member.", nil, nil)
	limitSeries = prometheus.NewDesc("freshet_nats_stored_limit_bytes",
		"Bytes that the streams may take on this member.", nil, nil)
	peersSeries = prometheus.NewDesc("freshet_nats_peers",
		"Servers of the other members that this one has a route to.", nil, nil)
	healthySeries = prometheus.NewDesc("freshet_nats_healthy",
		"Whether the embedded server serves its streams: 1 or 0.", nil, nil)
	errorsSeries = prometheus.NewDesc("freshet_nats_api_errors_total",
		"Requests about streams that were answered with an error, of those that this member answered.", nil, nil)
	callsSeries = prometheus.NewDesc("freshet_nats_api_requests_total",
		"Requests about streams that this member answered.", nil, nil)
	slowSeries = prometheus.NewDesc("freshet_nats_slow_connections_total",
		"Connections that were cut because their reader was too slow.", nil, nil)
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

// Collect implements prometheus.Collector. It looks at each stream of this server
// and asks no other one.
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
		return // it has stopped, and healthy says so
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

// peers counts the servers that there is a route to; there are several routes to
// each.
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
