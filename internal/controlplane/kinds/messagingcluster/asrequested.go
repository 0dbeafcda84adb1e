package messagingcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/dataplane/provision"
)

// conditionAsRequested is True when everything that the spec requests is in effect. It does not
// affect Ready (docs/spec/resources.md#r13).
const conditionAsRequested = "AsRequested"

const (
	reasonAsRequested  = "AsRequested"
	reasonMemberLimits = "PoolMemberLimits"
)

// asRequested compares the spec with what the pool member provides. The available engines run a
// cluster in the single process of the server, or in the process of every member of an ensemble.
// Each process is broker and storage, with the resources that it has.
func (c *Controller) asRequested(cluster *object, instance *v1alpha1.MessagingInstance,
	processes int32,
) v1alpha1.Condition {
	missing := withoutEffect(&cluster.Spec, processes, instance.Spec.Type == v1alpha1.InstanceServerless)
	if len(missing) == 0 {
		return conditions.True(conditionAsRequested, reasonAsRequested,
			"everything that the spec requests is in effect", cluster.Generation)
	}
	name, engine := "", ""
	if _, member, ok := c.plan.Member(cluster.Spec.PoolMemberRef); ok {
		name, engine = member.Name, member.Engine
	}
	return conditions.False(conditionAsRequested, reasonMemberLimits, fmt.Sprintf(
		"pool member %s (engine %s) runs %s, with the resources of the process; these fields have no effect: %s",
		name, engine, describeProcesses(processes), strings.Join(missing, ", ")), cluster.Generation)
}

// withoutEffect returns the fields that have no effect. The sizes of a serverless cluster are
// prescribed and therefore not requested.
func withoutEffect(spec *v1alpha1.MessagingClusterSpec, processes int32, serverless bool) []string {
	var missing []string
	addIf := func(field string, requested bool) {
		if requested {
			missing = append(missing, field)
		}
	}
	if b := &spec.Broker; !serverless {
		addIf(replicasField("spec.broker", b.Replicas, processes), b.Replicas != nil && *b.Replicas > processes)
		if r := b.Resources; r != nil {
			addIf("spec.broker.resources.cpu", !r.CPU.IsZero())
			addIf("spec.broker.resources.heapPercentage", r.HeapPercentage != 0)
			addIf("spec.broker.resources.directPercentage", r.DirectPercentage != 0)
		}
		addIf("spec.broker.resourceSpec.nodeType", b.Resources == nil && b.ResourceSpec != nil &&
			b.ResourceSpec.NodeType != NodeTypeShared)
	}
	addIf("spec.broker.autoScalingPolicy", spec.Broker.AutoScalingPolicy != nil)
	if s := spec.Storage; s != nil && !serverless {
		addIf(replicasField("spec.storage", s.Replicas, processes), s.Replicas != nil && *s.Replicas > processes)
		if r := s.Resources; r != nil {
			addIf("spec.storage.resources.cpu", !r.CPU.IsZero())
			addIf("spec.storage.resources.memory", !r.Memory.IsZero())
			addIf("spec.storage.resources.heapPercentage", r.HeapPercentage != 0)
			addIf("spec.storage.resources.directPercentage", r.DirectPercentage != 0)
			addIf("spec.storage.resources.journalDisk (no ledgerDisk)", isSet(r.JournalDisk) && !isSet(r.LedgerDisk))
		}
		addIf("spec.storage.resourceSpec.nodeType", s.Resources == nil && s.ResourceSpec != nil &&
			s.ResourceSpec.NodeType != NodeTypeShared)
		addIf("spec.storage.resourceSpec.storageSize", s.ResourceSpec != nil && s.ResourceSpec.StorageSize != "")
		addIf("spec.storage.autoScalingPolicy", s.AutoScalingPolicy != nil)
	}
	addIf("spec.maintenanceWindow", spec.MaintenanceWindow != nil)
	addIf("spec.tolerations", len(spec.Tolerations) > 0)
	addIf("spec.endpointAccess", len(spec.EndpointAccess) > 0)
	addIf("spec.volume", spec.Volume != "")
	addIf("spec.catalogs", len(spec.Catalogs) > 0)
	addIf("spec.tableFormat", spec.TableFormat != "")
	if spec.Config != nil {
		missing = append(missing, configWithoutEffect(spec.Config)...)
	}
	return missing
}

// isSet reports whether a disk has a size. A disk of size 0 has the default size, which is unlimited.
func isSet(disk *resource.Quantity) bool { return disk != nil && disk.Sign() > 0 }

// storedBytesOf returns the bytes of messages that the disks of a cluster may hold; 0 without a limit. The
// service has never set the size of a disk itself, so a stored size is one that a user requested.
func storedBytesOf(cluster *object) int64 {
	s := cluster.Spec.Storage
	if s == nil || s.Resources == nil || !isSet(s.Resources.LedgerDisk) {
		return 0
	}
	size := s.Resources.LedgerDisk.DeepCopy()
	if isSet(s.Resources.JournalDisk) {
		size.Add(*s.Resources.JournalDisk)
	}
	return bytesOf(size)
}

// memoryOf returns the bytes of messages that a cluster may buffer; 0 without a limit. The memory of a
// serverless cluster is prescribed and therefore not requested. Earlier versions stored 4Gi for clusters
// that omitted it, which cannot be distinguished from a request. That is more than a server buffers unless
// its own limits are raised.
func memoryOf(cluster *object, instance *v1alpha1.MessagingInstance) int64 {
	r := cluster.Spec.Broker.Resources
	if r == nil || instance.Spec.Type == v1alpha1.InstanceServerless {
		return 0
	}
	return bytesOf(r.Memory)
}

// bytesOf returns a size in bytes, at most 1 EiB, because Quantity.Value overflows.
func bytesOf(size resource.Quantity) int64 {
	const most = 1 << 60
	if size.CmpInt64(most) > 0 {
		return most
	}
	return size.Value()
}

// describeProcesses describes the processes of a cluster.
func describeProcesses(processes int32) string {
	if processes == 1 {
		return "1 broker with storage, in the server's process"
	}
	return fmt.Sprintf("%d brokers with storage, one in the process of each member of the ensemble", processes)
}

func replicasField(part string, replicas *int32, processes int32) string {
	if replicas == nil {
		return part + ".replicas"
	}
	if processes == 1 {
		return fmt.Sprintf("%s.replicas (%d requested, 1 running)", part, *replicas)
	}
	return fmt.Sprintf("%s.replicas (%d requested, %d running)", part, *replicas, processes)
}

// configWithoutEffect returns the settings that have no effect. Disabling an unsupported feature is
// not a request.
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

// unknownCustom returns the unknown keys of spec.config.custom, sorted.
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

// knownCustom returns the entries of spec.config.custom that the data plane supports.
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

// Warnings implements store.Warner. It warns about unknown keys, which may be mistyped.
func (*Kind) Warnings(_ context.Context, o, old *object) []string {
	var had []string
	if old != nil {
		had = unknownCustom(old.Spec.Config)
	}
	var warnings []string
	for _, key := range unknownCustom(o.Spec.Config) {
		if !slices.Contains(had, key) {
			warnings = append(warnings,
				fmt.Sprintf("spec.config.custom: %q is not a known key and has no effect; known keys are %s",
					key, strings.Join(slices.Sorted(maps.Keys(provision.CustomKeys)), ", ")))
		}
	}
	return warnings
}
