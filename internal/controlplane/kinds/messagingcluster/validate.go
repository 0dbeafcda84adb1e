package messagingcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/validation"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ops/quota"
)

const (
	maxReplicas     = 15
	minStorageNodes = 3
	maxPercentage   = 100
	maxDisplayName  = 253
	maxEntries      = 256
	maxDaysOfWeek   = 7
	lowestCPU       = "400m"
	highestCPU      = "16"
	lowestMemory    = "1.6Gi"
	highestMemory   = "64Gi"
)

// Validate implements store.Validator.
func (k *Kind) Validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Required(spec.Child("instanceName"), o.Spec.InstanceName)
	errs = append(errs, validation.Name(spec.Child("instanceName"), o.Spec.InstanceName)...)
	errs = append(errs, validation.MaxLength(spec.Child("displayName"), o.Spec.DisplayName, maxDisplayName)...)
	errs = append(errs, validation.OneOf(spec.Child("releaseChannel"), o.Spec.ReleaseChannel,
		v1alpha1.ReleaseChannelRapid, v1alpha1.ReleaseChannelLTS)...)
	errs = append(errs, validateBroker(spec.Child("broker"), &o.Spec.Broker)...)
	if o.Spec.Storage != nil {
		errs = append(errs, k.validateStorage(spec.Child("storage"), o.Spec.Storage)...)
	}
	if o.Spec.Config != nil {
		errs = append(errs, validateConfig(spec.Child("config"), o.Spec.Config)...)
	}
	if o.Spec.MaintenanceWindow != nil {
		errs = append(errs, validateWindow(spec.Child("maintenanceWindow"), o.Spec.MaintenanceWindow)...)
	}
	errs = append(errs, validation.Unique(spec.Child("catalogs"), o.Spec.Catalogs)...)
	for i, t := range o.Spec.Tolerations {
		p := spec.Child("tolerations").Index(i)
		errs = append(errs, validation.OneOf(p.Child("operator"), t.Operator, "Exists", "Equal")...)
		errs = append(errs, validation.OneOf(p.Child("effect"), t.Effect, "NoSchedule", "PreferNoSchedule",
			"NoExecute")...)
	}
	return errs
}

func validateBroker(p *field.Path, b *v1alpha1.Broker) field.ErrorList {
	errs := validateReplicas(p, b.Replicas, b.AutoScalingPolicy, 1)
	if r := b.Resources; r != nil {
		errs = append(errs, validateSize(p.Child("resources"), r.CPU, r.Memory, r.HeapPercentage,
			r.DirectPercentage)...)
	}
	return errs
}

func (k *Kind) validateStorage(p *field.Path, s *v1alpha1.Storage) field.ErrorList {
	replicas := s.Replicas
	if k.isDefaultCopies(replicas) {
		replicas = nil
	}
	errs := validateReplicas(p, replicas, s.AutoScalingPolicy, minStorageNodes)
	if r := s.Resources; r != nil {
		p := p.Child("resources")
		errs = append(errs, validateSize(p, r.CPU, r.Memory, r.HeapPercentage, r.DirectPercentage)...)
		errs = append(errs, validation.NotNegative(p.Child("ledgerDisk"), r.LedgerDisk)...)
		errs = append(errs, validation.NotNegative(p.Child("journalDisk"), r.JournalDisk)...)
	}
	return errs
}

// isDefaultCopies reports whether a number of storage nodes below the minimum is one that the service
// sets: the copies that run here, or the single copy of a cluster that was created on a single server.
func (k *Kind) isDefaultCopies(replicas *int32) bool {
	_, copies := k.running()
	return replicas != nil && (*replicas == 1 || *replicas == copies)
}

// validateSingleCopy rejects a single copy that a caller requests in an ensemble.
func (k *Kind) validateSingleCopy(o, old *object) field.ErrorList {
	single := func(o *object) bool {
		return o != nil && o.Spec.Storage != nil && o.Spec.Storage.Replicas != nil && *o.Spec.Storage.Replicas == 1
	}
	if _, copies := k.running(); copies == 1 || !single(o) || single(old) {
		return nil
	}
	return validation.Between(field.NewPath("spec", "storage", "replicas"), 1, minStorageNodes, maxReplicas)
}

func validateReplicas(p *field.Path, replicas *int32, scaling *v1alpha1.AutoScalingPolicy,
	least int64,
) field.ErrorList {
	var errs field.ErrorList
	if replicas != nil {
		errs = validation.Between(p.Child("replicas"), int64(*replicas), least, maxReplicas)
	}
	if scaling == nil {
		return errs
	}
	p = p.Child("autoScalingPolicy")
	if scaling.MinReplicas != 0 {
		errs = append(errs, validation.Between(p.Child("minReplicas"), int64(scaling.MinReplicas), least,
			maxReplicas)...)
	}
	if scaling.MaxReplicas == 0 {
		return append(errs, field.Required(p.Child("maxReplicas"), ""))
	}
	return append(errs, validation.Between(p.Child("maxReplicas"), int64(scaling.MaxReplicas),
		max(least, int64(scaling.MinReplicas)), maxReplicas)...)
}

func validateSize(p *field.Path, cpu, memory resource.Quantity, heap, direct int32) field.ErrorList {
	errs := validation.QuantityBetween(p.Child("cpu"), cpu, lowestCPU, highestCPU)
	errs = append(errs, validation.QuantityBetween(p.Child("memory"), memory, lowestMemory, highestMemory)...)
	errs = append(errs, validation.Between(p.Child("heapPercentage"), int64(heap), 0, maxPercentage)...)
	errs = append(errs, validation.Between(p.Child("directPercentage"), int64(direct), 0, maxPercentage)...)
	if sum := int64(heap) + int64(direct); len(errs) == 0 && sum > maxPercentage {
		errs = append(errs, field.Invalid(p.Child("directPercentage"), direct,
			"heapPercentage and directPercentage together must not exceed 100"))
	}
	return errs
}

func validateConfig(p *field.Path, c *v1alpha1.ClusterConfig) field.ErrorList {
	errs := validateProtocols(p.Child("protocols"), c.Protocols)
	if n := len(c.Custom); n > maxEntries {
		errs = append(errs, field.TooMany(p.Child("custom"), n, maxEntries))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Custom)) {
		if _, _, _, err := quota.ParseKey(key, c.Custom[key]); err != nil {
			errs = append(errs, field.Invalid(p.Child("custom").Key(key), c.Custom[key], err.Error()))
		}
	}
	if c.AuditLog != nil {
		p := p.Child("auditLog", "categories")
		if len(c.AuditLog.Categories) == 0 {
			errs = append(errs, field.Required(p, ""))
		}
		for i, category := range c.AuditLog.Categories {
			if category == "" {
				errs = append(errs, field.Required(p.Index(i), ""))
			}
			errs = append(errs, validation.OneOf(p.Index(i), category, "Management", "Describe", "Produce",
				"Consume")...)
		}
		errs = append(errs, validation.Unique(p, c.AuditLog.Categories)...)
	}
	return errs
}

func validateWindow(p *field.Path, w *v1alpha1.MaintenanceWindow) field.ErrorList {
	var errs field.ErrorList
	if w.Recurrence != "" {
		days := strings.Split(w.Recurrence, ",")
		if len(days) > maxDaysOfWeek {
			errs = append(errs, field.TooMany(p.Child("recurrence"), len(days), maxDaysOfWeek))
		}
		for _, day := range days {
			errs = append(errs, validation.OneOf(p.Child("recurrence"), strings.TrimSpace(day), "0", "1", "2", "3",
				"4", "5", "6")...)
		}
	}
	if w.Window != nil {
		if _, err := time.Parse("15:04", w.Window.StartTime); err != nil {
			errs = append(errs, field.Invalid(p.Child("window", "startTime"), w.Window.StartTime,
				"must be a time of day such as 22:00"))
		}
		if d := w.Window.Duration.Duration; d <= 0 || d > 24*time.Hour {
			errs = append(errs, field.Invalid(p.Child("window", "duration"), d.String(),
				"must be more than 0 and at most 24h"))
		}
	}
	return errs
}

// ValidateCreate implements store.CreateValidator. It rejects a cluster that no pool member can
// run.
func (k *Kind) ValidateCreate(ctx context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	var pool *v1alpha1.ObjectReference
	instance, found := k.Instances.Lookup(ctx, o.Namespace, o.Spec.InstanceName)
	if found {
		pool = instance.Spec.PoolRef
	}
	errs := append(validateHost(o), k.validateSingleCopy(o, nil)...)
	if text, ok := custom(o, provision.CustomShards); ok {
		if _, err := provision.ParseShards(text); err != nil {
			errs = append(errs, field.Invalid(spec.Child("config", "custom").Key(provision.CustomShards),
				text, err.Error()))
		}
	}
	switch {
	case o.Spec.Location == "" && o.Spec.PoolMemberRef == nil:
		errs = append(errs, field.Required(spec.Child("location"), "set location or poolMemberRef"))
	case o.Spec.PoolMemberRef == nil:
		errs = append(errs, field.NotSupported(spec.Child("location"), o.Spec.Location, k.plan.Locations(pool)))
	default:
		errs = append(errs, k.validateMember(spec, o, pool)...)
	}
	if found && instance.DeletionTimestamp != nil {
		errs = append(errs, field.Invalid(spec.Child("instanceName"), o.Spec.InstanceName,
			"the instance is being deleted"))
	}
	if found && instance.Spec.Type == v1alpha1.InstanceServerless {
		errs = append(errs, validateServerless(spec, o)...)
	}
	return errs
}

func (k *Kind) validateMember(spec *field.Path, o *object, pool *v1alpha1.ObjectReference) field.ErrorList {
	path := spec.Child("poolMemberRef")
	owner, member, ok := k.plan.Member(o.Spec.PoolMemberRef)
	if !ok {
		return field.ErrorList{field.NotFound(path, o.Spec.PoolMemberRef.Name)}
	}
	var errs field.ErrorList
	if member.Location != o.Spec.Location {
		errs = append(errs, field.Invalid(spec.Child("location"), o.Spec.Location,
			fmt.Sprintf("pool member %s is at %s", member.Name, member.Location)))
	}
	if want, known := k.plan.Pool(pool); known && (want.Name != owner.Name || want.Namespace != owner.Namespace) {
		errs = append(errs, field.Invalid(path, member.Name,
			fmt.Sprintf("belongs to pool %s, but the instance is in pool %s", owner.Name, want.Name)))
	}
	return errs
}

// validateServerless checks that a serverless cluster has two brokers of half a unit each, no
// storage of its own, and the rapid channel.
func validateServerless(spec *field.Path, o *object) field.ErrorList {
	var errs field.ErrorList
	if o.Spec.Storage != nil {
		errs = append(errs, field.Forbidden(spec.Child("storage"),
			"must not be set: a serverless cluster has no storage of its own"))
	}
	if o.Spec.ReleaseChannel != v1alpha1.ReleaseChannelRapid {
		errs = append(errs, field.Invalid(spec.Child("releaseChannel"), o.Spec.ReleaseChannel,
			"must be rapid for a serverless cluster"))
	}
	if r := o.Spec.Broker.Replicas; r != nil && *r != serverlessBrokers {
		errs = append(errs, field.Invalid(spec.Child("broker", "replicas"), *r, "must be 2 for a serverless cluster"))
	}
	if r := o.Spec.Broker.Resources; r != nil {
		path := spec.Child("broker", "resources")
		errs = append(errs, validation.QuantityBetween(path.Child("cpu"), r.CPU, serverlessCPU, serverlessCPU)...)
		errs = append(errs, validation.QuantityBetween(path.Child("memory"), r.Memory, serverlessMemory,
			serverlessMemory)...)
	}
	return errs
}

// ValidateUpdate implements store.UpdateValidator.
func (k *Kind) ValidateUpdate(ctx context.Context, o, old *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Immutable(spec.Child("instanceName"), o.Spec.InstanceName, old.Spec.InstanceName)
	errs = append(errs, k.validateSingleCopy(o, old)...)
	errs = append(errs, validation.Immutable(spec.Child("location"), o.Spec.Location, old.Spec.Location)...)
	errs = append(errs, validation.Immutable(spec.Child("poolMemberRef"), o.Spec.PoolMemberRef,
		old.Spec.PoolMemberRef)...)
	errs = append(errs, validation.Immutable(spec.Child("releaseChannel"), o.Spec.ReleaseChannel,
		old.Spec.ReleaseChannel)...)
	if lakehouse(old) && !lakehouse(o) {
		errs = append(errs, field.Forbidden(spec.Child("config", "lakehouseStorage"),
			"cannot be disabled once it is enabled"))
	}
	errs = append(errs, validateSameShards(spec.Child("config", "custom").Key(provision.CustomShards), o, old)...)
	instance, found := k.Instances.Lookup(ctx, o.Namespace, o.Spec.InstanceName)
	// A cluster that was created before its serverless instance may violate these rules; it must
	// still be possible to change and delete it.
	if found && instance.Spec.Type == v1alpha1.InstanceServerless && len(validateServerless(spec, old)) == 0 {
		errs = append(errs, validateServerless(spec, o)...)
	}
	return errs
}

// validateSameShards rejects a change of the number of shards, because it determines where topics
// are stored.
func validateSameShards(p *field.Path, o, old *object) field.ErrorList {
	is, set := custom(o, provision.CustomShards)
	was, had := custom(old, provision.CustomShards)
	if is == was && set == had {
		return nil
	}
	return field.ErrorList{field.Invalid(p, is,
		"cannot be changed after a cluster is created; create a new cluster for another number of shards")}
}

func custom(o *object, key string) (value string, ok bool) {
	if o.Spec.Config == nil {
		return "", false
	}
	value, ok = o.Spec.Config.Custom[key]
	return value, ok
}

// ValidateDelete implements store.DeleteValidator. It honours the protection annotation.
func (*Kind) ValidateDelete(_ context.Context, o *object, _ *metav1.DeleteOptions) error {
	if store.Protected(o) {
		return store.ProtectedError(groupResource, o.Name)
	}
	return nil
}

func lakehouse(o *object) bool { return o.Spec.Config != nil && o.Spec.Config.LakehouseStorage != nil }
