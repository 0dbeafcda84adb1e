package server

import (
	"freshet/api/v1alpha1"
	"freshet/internal/config"
	"freshet/internal/controlplane/pools"
)

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
