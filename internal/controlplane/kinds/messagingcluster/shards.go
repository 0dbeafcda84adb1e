package messagingcluster

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/dataplane/provision"
)

// conditionShards exists in an ensemble: True when every shard of the cluster has an owner and all
// its copies exist. Its message lists the owners and the copies that lag.
const conditionShards = "ShardsReady"

const (
	reasonShards   = "AllOwnedAndCopied"
	reasonNoOwner  = "NoOwner"
	reasonCopies   = "CopiesMissing"
	reasonDamaged  = "ShardFailed"
	reasonNotOpen  = "NotOpen"
	shardsInterval = 10 * time.Second // owners and copies change without an event
)

// conditionSynced exists in an ensemble with an external log: whether acknowledged writes survive a
// simultaneous power loss of a majority of the log's servers. It does not affect Ready.
const conditionSynced = "WritesSynced"

// syncedCondition returns the condition WritesSynced; false if it does not apply.
func (c *Controller) syncedCondition(cluster *object) (v1alpha1.Condition, bool) {
	external, synced, known, reason, message := c.plane.Synced()
	if !external {
		return v1alpha1.Condition{}, false
	}
	is := conditions.False(conditionSynced, reason, message, cluster.Generation)
	switch {
	case synced:
		is.Status = v1alpha1.ConditionTrue
	case !known:
		is.Status = v1alpha1.ConditionUnknown
	}
	return is, true
}

// shardsOf returns the shards of a cluster; nil without shards.
func (c *Controller) shardsOf(cluster *object) []provision.Shard {
	return c.plane.Shards(string(cluster.UID))
}

// refreshInterval returns the interval at which a running cluster's status is refreshed without a
// change; 0 for never.
func (c *Controller) refreshInterval(cluster *object) time.Duration {
	if len(c.shardsOf(cluster)) > 0 {
		return shardsInterval
	}
	return 0
}

// copiesOf returns the requested number of copies of each shard.
func copiesOf(cluster *object) int {
	if s := cluster.Spec.Storage; s != nil {
		return provision.WantedCopies(s.Replicas)
	}
	return provision.WantedCopies(nil)
}

// componentCounts returns the number of members that serve, which is all of them, and the copies of the shard
// that has the fewest; one of each without shards.
func componentCounts(shards []provision.Shard, members, live int) (broker, storage *v1alpha1.ComponentStatus) {
	if len(shards) == 0 {
		return componentStatus(1, 1), componentStatus(1, 1)
	}
	copies, ready := members, members
	for i := range shards {
		good := 0
		for _, c := range shards[i].Copies {
			if c.Live && c.Problem == "" {
				good++
			}
		}
		copies, ready = min(copies, len(shards[i].Copies)), min(ready, good)
	}
	return componentStatus(members, live), componentStatus(copies, ready)
}

func componentStatus(all, ready int) *v1alpha1.ComponentStatus {
	//nolint:gosec // a handful
	return &v1alpha1.ComponentStatus{Replicas: int32(all), ReadyReplicas: int32(ready), UpdatedReplicas: int32(ready)}
}

// shardStatus converts the shards for the status. There are 64 at most.
func shardStatus(shards []provision.Shard) []v1alpha1.ShardStatus {
	var all []v1alpha1.ShardStatus
	for i := range shards {
		//nolint:gosec // counted up from 0
		s := v1alpha1.ShardStatus{
			Number: int32(shards[i].Number), Owner: shards[i].Owner, Epoch: int64(shards[i].Epoch),
		}
		for _, c := range shards[i].Copies {
			s.Copies = append(s.Copies,
				v1alpha1.ShardCopy{Member: c.Member, Live: c.Live, Lag: roundLag(c.Lag), Problem: c.Problem})
		}
		all = append(all, s)
	}
	return all
}

// minReportedLag is the lag from which it is reported; a smaller lag is normal under load.
const minReportedLag = 1000

// roundLag rounds the lag down, so that small changes do not cause status writes.
func roundLag(lag uint64) int64 {
	if lag < minReportedLag {
		return 0
	}
	return minReportedLag << (bits.Len64(lag/minReportedLag) - 1)
}

// reasonLogLost: the copies do not match the log (engine.ErrLogLost).
const reasonLogLost = "LogLost"

// reasonJournalLost: journals of the cluster have lost records and are closed (provision.JournalLost).
const reasonJournalLost = "JournalLost"

// logLost lists the copies that do not match their log, and what to do; "" if there are none.
func (c *Controller) logLost(cluster *object) string {
	var lost, commands []string
	shards := c.shardsOf(cluster)
	for i := range shards {
		for _, each := range shards[i].Copies {
			if each.Lost {
				lost = append(lost, fmt.Sprintf("shard %d on member %s: %s", shards[i].Number, each.Member,
					each.Problem))
			}
		}
		if len(shards[i].Lost()) > 0 {
			commands = append(commands,
				fmt.Sprintf("freshet ensemble accept-loss %s/%s %d", cluster.Namespace, cluster.Name, shards[i].Number))
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return strings.Join(lost, "; ") + ". Start the members that are stopped, or review the loss and accept it with: " +
		strings.Join(commands, "; ")
}

// withShards returns a copy of the cluster with the current state of its shards in the status.
func (c *Controller) withShards(cluster *object) *object {
	shards := c.shardsOf(cluster)
	if len(shards) == 0 {
		return c.withoutShards(cluster)
	}
	known := cluster.DeepCopy()
	members, live := c.plane.Membership()
	known.Status.Shards = shardStatus(shards)
	if known.Status.Storage != nil { // the cluster has run before
		known.Status.Broker, known.Status.Storage = componentCounts(shards, members, live)
	}
	is := shardsCondition(cluster, shards, min(copiesOf(cluster), members))
	if lost := c.logLost(cluster); lost != "" {
		is = conditions.False(conditionShards, reasonLogLost, lost, cluster.Generation)
	}
	known.Status.Conditions = conditions.Set(known.Status.Conditions, is)
	if is, ok := c.replicatedCondition(cluster); ok {
		known.Status.Conditions = conditions.Set(known.Status.Conditions, is)
	}
	if is, ok := c.syncedCondition(cluster); ok {
		known.Status.Conditions = conditions.Set(known.Status.Conditions, is)
	}
	return known
}

// withoutShards returns a cluster that is not open on this server. In an ensemble, nothing is known
// of its shards then, whatever an earlier status says.
func (c *Controller) withoutShards(cluster *object) *object {
	is, inEnsemble := c.replicatedCondition(cluster)
	if !inEnsemble {
		return cluster
	}
	known := cluster.DeepCopy()
	known.Status.Conditions = conditions.Set(known.Status.Conditions, is)
	if _, had := conditions.Find(known.Status.Conditions, conditionShards); had {
		known.Status.Conditions = conditions.Set(known.Status.Conditions, conditions.False(conditionShards,
			reasonNotOpen, "the member that runs the controllers has not opened the cluster", cluster.Generation))
	}
	return known
}

// shardsCondition returns the condition ShardsReady.
func shardsCondition(cluster *object, shards []provision.Shard, want int) v1alpha1.Condition {
	owned := map[string][]string{}
	var failed, missing, few []string
	for i := range shards {
		s := &shards[i]
		number := fmt.Sprint(s.Number)
		owned[s.Owner] = append(owned[s.Owner], number)
		if s.Problem != "" {
			failed = append(failed, "shard "+number+": "+s.Problem)
		}
		for _, c := range s.Copies {
			if !c.Live {
				missing = append(missing, c.Member+" (shard "+number+")")
			}
			if c.Problem != "" && s.Problem == "" {
				failed = append(failed, "shard "+number+" on member "+c.Member+": "+c.Problem)
			}
		}
		if len(s.Copies) < want {
			few = append(few, fmt.Sprintf("shard %s has %d of %d", number, len(s.Copies), want))
		}
	}
	message := shardsMessage(shards, owned)
	switch without := owned[""]; {
	case len(failed) > 0:
		return conditions.False(conditionShards, reasonDamaged, strings.Join(failed, "; "), cluster.Generation)
	case len(without) > 0:
		return conditions.False(conditionShards, reasonNoOwner, "these shards have no owner: "+
			strings.Join(without, ", ")+"; "+message, cluster.Generation)
	case len(missing) > 0:
		return conditions.False(conditionShards, reasonCopies, "these copies are on members that are not live: "+
			strings.Join(missing, ", ")+"; "+message, cluster.Generation)
	case len(few) > 0:
		return conditions.False(conditionShards, reasonCopies, "copies are being created: "+
			strings.Join(few, ", ")+"; "+message, cluster.Generation)
	}
	return conditions.True(conditionShards, reasonShards, message, cluster.Generation)
}

// shardsMessage lists the owners of the shards and the copies that lag.
func shardsMessage(shards []provision.Shard, owned map[string][]string) string {
	var owners, behind []string
	for member, numbers := range owned {
		if member != "" {
			owners = append(owners, member+" owns "+strings.Join(numbers, ", "))
		}
	}
	slices.Sort(owners)
	copies := 0
	for i := range shards {
		copies = max(copies, len(shards[i].Copies))
		for _, c := range shards[i].Copies {
			if c.Lag >= minReportedLag {
				behind = append(behind,
					fmt.Sprintf("%s in shard %d by %d or more", c.Member, shards[i].Number, roundLag(c.Lag)))
			}
		}
	}
	text := fmt.Sprintf("%d shards with %d copies: %s", len(shards), copies, strings.Join(owners, "; "))
	if len(behind) > 0 {
		text += "; copies behind the log: " + strings.Join(behind, ", ")
	}
	return text
}
