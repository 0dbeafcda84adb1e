package messagingcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/dataplane/provision"
)

// conditionAsRequested is True when the cluster is all that its spec asks for. It
// is no part of Ready (docs/spec/resources.md#r13).
const conditionAsRequested = "AsRequested"

const (
	reasonAsRequested  = "AsRequested"
	reasonMemberLimits = "PoolMemberLimits"
)

// asRequested compares what the spec asks for with what the pool member gives. The
// engines that there are run a cluster in the server's one process, or in that of
// every member of a group: brokers that also store, with whatever a process has.
func (c *Controller) asRequested(cluster *object, instance *v1alpha1.MessagingInstance, run int32) v1alpha1.Condition {
	missing := withoutEffect(&cluster.Spec, run, instance.Spec.Type == v1alpha1.InstanceServerless)
	if len(missing) == 0 {
		return conditions.True(conditionAsRequested, reasonAsRequested, "everything the spec asks for is in effect",
			cluster.Generation)
	}
	name, engine := "", ""
	if _, member, ok := c.plan.Member(cluster.Spec.PoolMemberRef); ok {
		name, engine = member.Name, member.Engine
	}
	return conditions.False(conditionAsRequested, reasonMemberLimits, fmt.Sprintf(
		"pool member %s (engine %s) runs %s and with its resources; without effect: %s",
		name, engine, whatRuns(run), strings.Join(missing, ", ")), cluster.Generation)
}

// withoutEffect names the fields that ask for what the cluster is not. Sizes of a
// serverless cluster are prescribed, not asked for.
func withoutEffect(spec *v1alpha1.MessagingClusterSpec, run int32, serverless bool) []string {
	var missing []string
	note := func(field string, asked bool) {
		if asked {
			missing = append(missing, field)
		}
	}
	if b := &spec.Broker; !serverless {
		note(replicasField("spec.broker", b.Replicas, run), b.Replicas != nil && *b.Replicas > run)
		note("spec.broker.resources", b.Resources != nil)
		note("spec.broker.resourceSpec.nodeType", b.Resources == nil && b.ResourceSpec != nil &&
			b.ResourceSpec.NodeType != NodeTypeShared)
	}
	note("spec.broker.autoScalingPolicy", spec.Broker.AutoScalingPolicy != nil)
	if s := spec.Storage; s != nil && !serverless {
		note(replicasField("spec.storage", s.Replicas, run), s.Replicas != nil && *s.Replicas > run)
		note("spec.storage.resources", s.Resources != nil)
		note("spec.storage.resourceSpec.nodeType", s.Resources == nil && s.ResourceSpec != nil &&
			s.ResourceSpec.NodeType != NodeTypeShared)
		note("spec.storage.resourceSpec.storageSize", s.ResourceSpec != nil && s.ResourceSpec.StorageSize != "")
		note("spec.storage.autoScalingPolicy", s.AutoScalingPolicy != nil)
	}
	note("spec.maintenanceWindow", spec.MaintenanceWindow != nil)
	note("spec.tolerations", len(spec.Tolerations) > 0)
	note("spec.endpointAccess", len(spec.EndpointAccess) > 0)
	note("spec.volume", spec.Volume != "")
	note("spec.catalogs", len(spec.Catalogs) > 0)
	note("spec.tableFormat", spec.TableFormat != "")
	if spec.Config != nil {
		missing = append(missing, configWithoutEffect(spec.Config)...)
	}
	return missing
}

// whatRuns says what is broker and storage.
func whatRuns(run int32) string {
	if run == 1 {
		return "1 broker, which also stores, in the server's process"
	}
	return fmt.Sprintf("%d brokers, which also store, one in the process of each member of the group", run)
}

func replicasField(part string, replicas *int32, run int32) string {
	if replicas == nil {
		return part + ".replicas"
	}
	if run == 1 {
		return fmt.Sprintf("%s.replicas (%d asked for, 1 runs)", part, *replicas)
	}
	return fmt.Sprintf("%s.replicas (%d asked for, %d run)", part, *replicas, run)
}

// configWithoutEffect: switching off what is not there is no request.
func configWithoutEffect(config *v1alpha1.ClusterConfig) []string {
	var missing []string
	for _, feature := range []struct {
		field   string
		enabled *bool
	}{
		{"websocketEnabled", config.WebsocketEnabled},
		{"functionEnabled", config.FunctionEnabled},
		{"transactionEnabled", config.TransactionEnabled},
	} {
		if feature.enabled != nil && *feature.enabled {
			missing = append(missing, "spec.config."+feature.field)
		}
	}
	for _, protocol := range slices.Sorted(maps.Keys(config.Protocols)) {
		if protocol == ProtocolStream {
			continue
		}
		missing = append(missing, "spec.config.protocols["+protocol+"]")
	}
	if config.AuditLog != nil {
		missing = append(missing, "spec.config.auditLog")
	}
	if config.LakehouseStorage != nil {
		missing = append(missing, "spec.config.lakehouseStorage")
	}
	for _, key := range unknownCustom(config) {
		missing = append(missing, "spec.config.custom["+key+"]")
	}
	return missing
}

// unknownCustom lists the keys of spec.config.custom that mean nothing, in order.
func unknownCustom(config *v1alpha1.ClusterConfig) []string {
	if config == nil {
		return nil
	}
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(config.Custom)) {
		if _, known := provision.CustomKeys[key]; !known {
			unknown = append(unknown, key)
		}
	}
	return unknown
}

// knownCustom is what of spec.config.custom the data plane gets.
func knownCustom(cluster *object) map[string]string {
	if cluster.Spec.Config == nil {
		return nil
	}
	known := maps.Clone(cluster.Spec.Config.Custom)
	for _, key := range unknownCustom(cluster.Spec.Config) {
		delete(known, key)
	}
	return known
}

// Warnings implements store.Warner: a key that means nothing may be a slip.
func (*Kind) Warnings(_ context.Context, o, old *object) []string {
	var had []string
	if old != nil {
		had = unknownCustom(old.Spec.Config)
	}
	var warnings []string
	for _, key := range unknownCustom(o.Spec.Config) {
		if !slices.Contains(had, key) {
			warnings = append(warnings,
				fmt.Sprintf("spec.config.custom: %q is not a known key and has no effect; known are %s",
					key, strings.Join(slices.Sorted(maps.Keys(provision.CustomKeys)), ", ")))
		}
	}
	return warnings
}
