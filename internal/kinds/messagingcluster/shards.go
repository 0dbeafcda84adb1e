package messagingcluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"freshet/api/v1alpha1"
	"freshet/internal/dataplane/provision"
	"freshet/internal/reconcile/conditions"
)

// conditionShards is there in a group of members: True when every shard of the
// cluster has an owner and all its copies are there. Its message says who owns what
// and who is behind.
const conditionShards = "ShardsReady"

const (
	reasonShards   = "AllOwnedAndCopied"
	reasonNoOwner  = "NoOwner"
	reasonCopies   = "CopiesMissing"
	reasonDamaged  = "ShardFailed"
	shardsInterval = 10 * time.Second // owners and copies change without an event
)

// sharded is a plane in a group of members.
type sharded interface {
	Shards(uid string) []provision.Shard
	Grouped() bool
}

// shardsOf describes the shards of a cluster; nil where there are none.
func (c *Controller) shardsOf(cluster *object) []provision.Shard {
	if plane, ok := c.plane.(sharded); ok {
		return plane.Shards(string(cluster.UID))
	}
	return nil
}

// lookAgain is when a cluster's status is to be written anew though nothing of it was
// changed; 0 for never.
func (c *Controller) lookAgain() time.Duration {
	if plane, ok := c.plane.(sharded); ok && plane.Grouped() {
		return shardsInterval
	}
	return 0
}

// runs counts the members that serve and that store; one without shards.
func runs(shards []provision.Shard) (broker, storage *v1alpha1.ComponentStatus) {
	if len(shards) == 0 {
		return &v1alpha1.ComponentStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1},
			&v1alpha1.ComponentStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1}
	}
	members, live := map[string]bool{}, map[string]bool{}
	copies, ready := 0, 0
	for i := range shards {
		there := 0
		for _, c := range shards[i].Copies {
			members[c.Member] = true
			if c.Live {
				there++
				live[c.Member] = true
			}
		}
		copies = max(copies, len(shards[i].Copies))
		if i == 0 || there < ready {
			ready = there
		}
	}
	all, up := int32(len(members)), int32(len(live)) //nolint:gosec // a handful
	return &v1alpha1.ComponentStatus{Replicas: all, ReadyReplicas: up, UpdatedReplicas: up},
		&v1alpha1.ComponentStatus{Replicas: int32(copies), ReadyReplicas: int32(ready), UpdatedReplicas: int32(ready)} //nolint:gosec // as above
}

// shardsCondition says how the shards are.
func shardsCondition(cluster *object, shards []provision.Shard) v1alpha1.Condition {
	owned := map[string][]string{}
	var failed, missing []string
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
		}
	}
	message := shardsMessage(shards, owned)
	switch without := owned[""]; {
	case len(failed) > 0:
		return conditions.False(conditionShards, reasonDamaged, strings.Join(failed, "; "), cluster.Generation)
	case len(without) > 0:
		return conditions.False(conditionShards, reasonNoOwner, "nobody owns shards "+strings.Join(without, ", ")+"; "+message, cluster.Generation)
	case len(missing) > 0:
		return conditions.False(conditionShards, reasonCopies, "these copies are of members that are not there: "+strings.Join(missing, ", ")+"; "+message, cluster.Generation)
	}
	return conditions.True(conditionShards, reasonShards, message, cluster.Generation)
}

// lagWorthTelling keeps what is normal under load out of the message, which would
// change all the time.
const lagWorthTelling = 1000

// shardsMessage says who owns what, and who is behind.
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
			if c.Lag >= lagWorthTelling {
				behind = append(behind, fmt.Sprintf("%s in shard %d by about %d", c.Member, shards[i].Number, c.Lag/lagWorthTelling*lagWorthTelling))
			}
		}
	}
	text := fmt.Sprintf("%d shards with %d copies: %s", len(shards), copies, strings.Join(owners, "; "))
	if len(behind) > 0 {
		text += "; behind the log: " + strings.Join(behind, ", ")
	}
	return text
}
