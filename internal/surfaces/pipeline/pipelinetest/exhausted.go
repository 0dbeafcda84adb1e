package pipelinetest

import (
	"freshet/internal/base/web"
	"freshet/internal/ops/quota"
)

// ThrottledCluster returns a cluster that has exceeded its quota for many hours.
func ThrottledCluster() *quota.Cluster {
	cluster := quota.New(quota.Limits{quota.BytesPerSecond: 1}, nil).Organization("acme").Open("c", quota.Limits{})
	cluster.Charge(1 << 20)
	return cluster
}

// FullLimiter returns a limiter whose only slot is taken.
func FullLimiter() *web.Limiter {
	limiter := web.NewLimiter(1, 1<<20)
	if err := limiter.Enter(web.Caller{Principal: "another caller"}); err != nil {
		panic(err)
	}
	return limiter
}
