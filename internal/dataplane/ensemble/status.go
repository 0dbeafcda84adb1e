package ensemble

import (
	"cmp"
	"fmt"
	"slices"

	"freshet/internal/dataplane/provision"
)

// ShardStatus is the state of a shard of a cluster.
type ShardStatus struct {
	Organization, Cluster string
	provision.Shard
}

// appliedKey identifies a shard in the positions that members report to each other: the uid of
// its cluster and its number.
func appliedKey(uid string, number int) string { return fmt.Sprint(uid, "/", number) }

// Applied returns the last applied position of this member's copy of each shard.
func (p *Plane) Applied() map[string]uint64 {
	applied := map[string]uint64{}
	for _, c := range p.Clusters() {
		for _, shard := range p.Shards(c.UID) {
			for _, each := range shard.Copies {
				if each.Member == p.ensemble.opts.Self {
					applied[appliedKey(c.UID, shard.Number)] = shard.Log - min(shard.Log, each.Lag)
				}
			}
		}
	}
	return applied
}

// ShardStatus returns the shards of all clusters on this member. The lag of a copy comes from
// applied, the positions that the members have just reported, or, if the member did not respond,
// from the position that it last stored.
func (p *Plane) ShardStatus(applied map[string]map[string]uint64) (list []ShardStatus) {
	for _, c := range p.Clusters() {
		for _, s := range p.Shards(c.UID) {
			key, stored := appliedKey(c.UID, s.Number), s.Log
			for _, each := range applied {
				s.Log = max(s.Log, each[key])
			}
			for i := range s.Copies {
				each := &s.Copies[i]
				each.Lag += s.Log - stored
				if position, reported := applied[each.Member][key]; reported {
					each.Lag = s.Log - position
				}
			}
			list = append(list, ShardStatus{c.Organization, c.Name, s})
		}
	}
	slices.SortFunc(list, func(a, b ShardStatus) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Number, b.Number))
	})
	return list
}
