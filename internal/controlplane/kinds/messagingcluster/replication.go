package messagingcluster

import (
	"fmt"
	"strings"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/dataplane/provision"
)

// conditionReplicated exists in an ensemble: True when every log and journal of the cluster has all
// its replicas, no damaged part and no difference between copies is known, and every live member can
// serve the cluster. It is False while the cluster is degraded, with what is wrong and what happens next.
const conditionReplicated = "FullyReplicated"

const (
	reasonReplicated  = "AllReplicasCurrent"
	reasonNoMajority  = "MajorityUnavailable"
	reasonMembers     = "MemberFailed"
	reasonFiles       = "FilesDamaged"
	reasonDiffering   = "CopiesDiffer"
	reasonNoReplica   = "ReplicasMissing"
	reasonOpening     = "Opening"
	maxNamedInMessage = 10
)

// replicatedCondition returns the condition FullyReplicated; false if it does not apply.
func (c *Controller) replicatedCondition(cluster *object) (v1alpha1.Condition, bool) {
	r := c.plane.Replication(string(cluster.UID))
	if !r.Known {
		return v1alpha1.Condition{}, false
	}
	no := func(reason, message string) (v1alpha1.Condition, bool) {
		return conditions.False(conditionReplicated, reason, message, cluster.Generation), true
	}
	switch {
	case len(r.NoMajority) > 0:
		return no(reasonNoMajority, "no majority of replicas is current, so nothing is accepted by: "+
			listed(r.NoMajority)+"; start the members that are down"+alsoMissing(&r))
	case len(r.Failing) > 0:
		return no(reasonMembers, failingMessage(r.Failing)+alsoMissing(&r))
	case len(r.Damaged) > 0:
		return no(reasonFiles, "damaged files are not used and are being replaced by good copies: "+
			listed(r.Damaged)+alsoMissing(&r))
	case len(r.Differing) > 0:
		return no(reasonDiffering, "contents of copies differ, and no majority decides which are right: "+
			listed(r.Differing)+"; start the members that are down; freshet ensemble status shows the difference"+
			alsoMissing(&r))
	case len(r.Missing) > 0:
		return no(reasonNoReplica, fmt.Sprintf("%d replicas are missing: %s; they catch up when their members run and "+
			"their files are intact", len(r.Missing), listed(r.Missing)))
	}
	return conditions.True(conditionReplicated, reasonReplicated,
		fmt.Sprintf("all %d streams have %d current replicas", r.Streams, r.Replicas), cluster.Generation), true
}

// alsoMissing names the missing replicas after a more serious problem.
func alsoMissing(r *provision.Replication) string {
	if len(r.Missing) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d replicas are missing: %s", len(r.Missing), listed(r.Missing))
}

// failingMessage says which members cannot serve the cluster. The cause can contain names of files,
// which only operators see.
func failingMessage(members []string) string {
	return "the cluster cannot be opened or is damaged on: " + strings.Join(members, ", ") +
		"; the member retries; freshet ensemble status shows the cause"
}

// listed joins names, of which a message has only the first ones.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamedInMessage)], ", ")
	if more := len(names) - maxNamedInMessage; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
