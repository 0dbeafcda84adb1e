package messagingcluster

import (
	"context"
	"slices"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/dataplane/provision"
)

// components are the components of a cluster, each with its condition and the part of the data
// plane that must run for it.
var components = []struct {
	condition string
	part      provision.Part
}{
	{"MetadataReady", provision.Metadata},
	{"StorageReady", provision.Storage},
	{"BrokerReady", provision.Broker},
	{"ProxyReady", provision.Proxy},
}

const (
	reasonDeployed     = "Deploy"
	reasonProvisioning = "Provisioning"
	reasonUpdating     = "Updating"
	reasonFailed       = "ProvisioningFailed"
	reasonNoInstance   = "InstanceNotFound"
)

const (
	messageReady    = "All components are ready"
	messageStarting = "being set up"
)

// conditionsOf returns one condition per component, the conditions of shards and AsRequested if
// they exist, and Ready last. The condition of a component that is not in up stays unchanged.
func conditionsOf(cluster *object, up map[provision.Part]bool, ready v1alpha1.Condition) []v1alpha1.Condition {
	old := cluster.Status.Conditions
	desired := make([]v1alpha1.Condition, 0, len(components)+1)
	for _, component := range components {
		c, known := conditions.Find(old, component.condition)
		switch running, reported := up[component.part]; {
		case reported && running:
			c = conditions.True(component.condition, reasonDeployed, messageReady, cluster.Generation)
		case reported || !known:
			c = conditions.False(component.condition, reasonDeployed, messageStarting, cluster.Generation)
		}
		desired = append(desired, c)
	}
	for _, kept := range []string{conditionShards, conditionReplicated, conditionSynced, conditionAsRequested} {
		if c, ok := conditions.Find(old, kept); ok {
			desired = append(desired, c)
		}
	}
	return conditions.Replace(old, append(desired, ready)...)
}

// keptReasons are why a cluster is not ready although its spec is applied.
var keptReasons = []string{reasonFailed, reasonLogLost, reasonMembers, reasonOpening}

// announce writes the reason Provisioning or Updating to the status.
func (c *Controller) announce(ctx context.Context, cluster *object) error {
	if ready, ok := conditions.Find(cluster.Status.Conditions, v1alpha1.ConditionReady); ok &&
		slices.Contains(keptReasons, ready.Reason) &&
		ready.ObservedGeneration == cluster.Generation {
		return nil // a retry: keep the error of the last attempt
	}
	if cluster.Status.ObservedGeneration > 0 {
		return c.notReady(ctx, cluster, reasonUpdating, "the new spec is being applied")
	}
	return c.notReady(ctx, cluster, reasonProvisioning, "the data plane is being set up")
}

func (c *Controller) notReady(ctx context.Context, cluster *object, reason, message string) error {
	known := c.withShards(cluster)
	status := *known.Status.DeepCopy()
	status.Conditions = conditionsOf(known, nil,
		conditions.False(v1alpha1.ConditionReady, reason, message, cluster.Generation))
	return c.write(ctx, cluster, status)
}

// progress writes that one part has started, while others are still starting.
func (c *Controller) progress(ctx context.Context, cluster *object, part provision.Part) error {
	ready, _ := conditions.Find(cluster.Status.Conditions, v1alpha1.ConditionReady)
	status := *cluster.Status.DeepCopy()
	status.Conditions = conditionsOf(cluster, map[provision.Part]bool{part: true}, ready)
	return c.write(ctx, cluster, status)
}

// describe returns the status of what runs: the process of the server, or of each member of an
// ensemble, is broker and storage, whatever number of replicas the spec requests.
func (c *Controller) describe(cluster *object, instance *v1alpha1.MessagingInstance) v1alpha1.MessagingClusterStatus {
	known := c.withShards(cluster).DeepCopy()
	status := *known.Status.DeepCopy()
	status.ObservedGeneration = cluster.Generation
	members, live := c.plane.Membership()
	status.Broker, status.Storage = componentCounts(c.shardsOf(cluster), members, live)
	status.InstanceType = instance.Spec.Type
	status.Endpoints = endpointsOf(c.plan, cluster, instance)
	if pool, _, ok := c.plan.Member(cluster.Spec.PoolMemberRef); ok {
		status.DeploymentType = pool.DeploymentType
	}
	known.Status.Conditions = conditions.Set(known.Status.Conditions,
		c.asRequested(cluster, instance, status.Broker.Replicas))
	status.Conditions = conditionsOf(known, allRunning,
		conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", cluster.Generation))
	return status
}

var allRunning = map[provision.Part]bool{
	provision.Metadata: true, provision.Storage: true, provision.Broker: true, provision.Proxy: true,
}

// write stores a changed status and updates the object for the next write.
func (c *Controller) write(ctx context.Context, cluster *object, status v1alpha1.MessagingClusterStatus) error {
	api := c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace)
	return reconcile.WriteStatus(ctx, api, cluster, &cluster.Status, status)
}
