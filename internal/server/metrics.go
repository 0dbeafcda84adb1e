package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/controlplane/storemetrics"
	"freshet/internal/dataplane/clustermetrics"
	"freshet/internal/identity/identitymetrics"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/kafkaapi"
)

// collectors returns the collectors of the running parts. All phases must be done.
func (s *server) collectors() []prometheus.Collector {
	list := []prometheus.Collector{
		clustermetrics.NewCollector(s.plane, func() bool { return s.settings.Load().Metrics.Topics }),
		identitymetrics.NewCollector(s.identity.directory, s.identity.verifier, &s.identity.signIns),
		storemetrics.NewCollector(s.store, s.api.Usage),
		quota.NewCollector(s.quotas),
		clustermetrics.NewUnpackingCollector(s.unpacking),
		s.backups,
	}
	if s.kafka.server != nil {
		list = append(list, kafkaapi.NewCollector(s.kafka.server))
	}
	if s.audit != nil {
		list = append(list, s.audit)
	}
	return list
}
