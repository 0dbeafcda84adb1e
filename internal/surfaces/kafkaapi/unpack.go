package kafkaapi

import (
	"context"

	"freshet/internal/base/fairshare"
)

// workContext returns the context of calls that decompress batches. It names the organization and
// the principal, so that the memory for that is shared fairly.
func (c *call) workContext(ctx context.Context) context.Context {
	p := c.session.principal
	return fairshare.WithCaller(ctx, fairshare.Caller{Organization: p.Organization, Principal: p.Name})
}
