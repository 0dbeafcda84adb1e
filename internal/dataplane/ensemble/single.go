package ensemble

import (
	"context"

	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble"
)

// SinglePlane runs the clusters of a single server. They have no shards.
type SinglePlane struct{ *dataplane.Plane }

// Membership returns one server, which is live.
func (SinglePlane) Membership() (all, live int) { return 1, 1 }

// Synced reports that a single server uses no external NATS servers: its engine syncs every write.
func (SinglePlane) Synced() (external, synced, known bool, reason, message string) {
	return false, true, true, "", ""
}

// Replication returns nothing: a single server has no replicas.
func (SinglePlane) Replication(string) provision.Replication { return provision.Replication{} }

// ShardStatus returns no shards.
func (SinglePlane) ShardStatus(map[string]map[string]uint64) []ShardStatus { return nil }

// Loss returns ensemble.ErrSingle.
func (SinglePlane) Loss(context.Context, ShardName, string) (*Loss, error) {
	return nil, ensemble.ErrSingle
}

// AcceptLoss returns ensemble.ErrSingle.
func (SinglePlane) AcceptLoss(context.Context, ShardName, string, string) (*Loss, error) {
	return nil, ensemble.ErrSingle
}

// Journals returns ensemble.ErrSingle.
func (SinglePlane) Journals(context.Context, ClusterName, string) ([]JournalReport, error) {
	return nil, ensemble.ErrSingle
}

// AcceptJournalLoss returns ensemble.ErrSingle.
func (SinglePlane) AcceptJournalLoss(context.Context, ClusterName, string, string, string) (*JournalReport, error) {
	return nil, ensemble.ErrSingle
}
