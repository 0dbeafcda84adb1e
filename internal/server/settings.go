package server

import (
	"bytes"
	"strings"
	"sync/atomic"

	"freshet/api/v1alpha1"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/pools"
	"freshet/internal/dataplane"
	"freshet/internal/ops/disk"
	"freshet/internal/ops/quota"
)

// currentSettings is the configuration with the changes by SIGHUP. Settings that need a restart
// have their values from the start.
type currentSettings struct{ atomic.Pointer[config.Config] }

// YAML returns the configuration as YAML, without secrets.
func (s *currentSettings) YAML() ([]byte, error) {
	var text bytes.Buffer
	err := config.Print(&text, s.Load())
	return text.Bytes(), err
}

// quotasOf returns the default limits, and those of single organizations.
func quotasOf(cfg *config.Config) (defaults quota.Limits, own map[string]quota.Limits, err error) {
	q := &cfg.Quotas
	defaults = quota.Limits{
		quota.Clusters: int64(q.Clusters), quota.Instances: int64(q.Instances), quota.Topics: int64(q.Topics),
		quota.Subscriptions: int64(q.Subscriptions), quota.Subjects: int64(q.Subjects),
		quota.SchemaBytes: int64(q.SchemaBytes), quota.StoredBytes: int64(q.StoredBytes),
		quota.ClientStateBytes: int64(q.ClientStateBytes), quota.TenantStateBytes: int64(q.TenantStateBytes),
		quota.AccountStateBytes: int64(q.AccountStateBytes),
		quota.RequestsPerSecond: int64(q.RequestsPerSecond), quota.BytesPerSecond: int64(q.BytesPerSecond),
	}
	if q.StoredBytes == 0 {
		if defaults[quota.StoredBytes], err = defaultStoredBytes(cfg.DataDir); err != nil {
			return defaults, nil, err
		}
	}
	own = map[string]quota.Limits{}
	for i := range q.Organizations {
		o := &q.Organizations[i]
		own[o.Name] = quota.Limits{
			quota.Clusters: int64(o.Clusters), quota.Instances: int64(o.Instances), quota.Topics: int64(o.Topics),
			quota.Subscriptions: int64(o.Subscriptions), quota.Subjects: int64(o.Subjects),
			quota.SchemaBytes: int64(o.SchemaBytes), quota.StoredBytes: int64(o.StoredBytes),
			quota.ClientStateBytes: int64(o.ClientStateBytes), quota.TenantStateBytes: int64(o.TenantStateBytes),
			quota.AccountStateBytes: int64(o.AccountStateBytes),
			quota.RequestsPerSecond: int64(o.RequestsPerSecond), quota.BytesPerSecond: int64(o.BytesPerSecond),
		}
	}
	return defaults, own, nil
}

// defaultStoredBytes returns the default of quotas.storedBytes: 75 % of the disk, so that one
// organization cannot fill it.
func defaultStoredBytes(dir string) (int64, error) {
	total, _, err := disk.Space(dir)
	return total / 4 * 3, err
}

// planOf returns the configured pools as the plan of the control plane.
func planOf(cfg *config.Config) *pools.Plan {
	plan := &pools.Plan{
		Domain: cfg.Domain,
		Images: map[string]pools.Images{
			v1alpha1.ReleaseChannelRapid: {Broker: "freshet/broker:rapid", Storage: "freshet/storage:rapid"},
			v1alpha1.ReleaseChannelLTS:   {Broker: "freshet/broker:lts", Storage: "freshet/storage:lts"},
		},
	}
	for _, pool := range cfg.Pools {
		p := pools.Pool{Namespace: pool.Namespace, Name: pool.Name, Type: pool.Type, DeploymentType: "hosted"}
		for _, m := range pool.Members {
			p.Members = append(p.Members, pools.Member{Name: m.Name, Location: m.Location, Engine: m.Engine})
		}
		plan.Pools = append(plan.Pools, p)
	}
	return plan
}

// accessMode returns which requests the access log contains.
func accessMode(cfg *config.Config) web.AccessMode {
	switch cfg.Log.Access {
	case config.AccessErrors:
		return web.AccessErrors
	case config.AccessOff:
		return web.AccessOff
	}
	return web.AccessAll
}

// planeOptions returns the options of the data plane.
func (s *server) planeOptions() dataplane.Options {
	total, _, err := disk.Space(s.cfg.Path("clusters"))
	if err != nil {
		// Before the first cluster its folder does not exist. If both fail the engine
		// chooses a reserve.
		total, _, _ = disk.Space(s.cfg.DataDir)
	}
	opts := dataplane.Options{
		Dir: s.cfg.Path("clusters"), Domain: s.cfg.Domain, Logger: s.log,
		DiskReserve: config.DiskReserve(total, s.cfg.Limits.DiskReserve), OpenTables: s.ports.budget.Tables,
		Quotas: s.quotas, Unpacking: s.unpacking,
		Limits: messaging.Limits{
			MessageBytes: int(s.cfg.Limits.MessageBody),
			MaxWait:      s.cfg.Timeouts.ConsumeMax.Std(),
			MaxWaiting:   s.cfg.Limits.WaitingConsumers,
		},
	}
	if s.cfg.DefaultCluster != config.Off {
		opts.DefaultOrganization, opts.DefaultName, _ = strings.Cut(s.cfg.DefaultCluster, "/")
	}
	return opts
}

// endpoints returns the addresses and credentials of etcd, embedded or external.
func (s *server) endpoints() etcd.Endpoints {
	if s.member != nil {
		return s.member.Endpoints()
	}
	return etcd.Endpoints{
		URLs: s.cfg.Etcd.Endpoints, CAFile: s.cfg.Etcd.CAFile, CertFile: s.cfg.Etcd.CertFile,
		KeyFile: s.cfg.Etcd.KeyFile,
	}
}
