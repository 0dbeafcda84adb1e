package messagingcluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/validation/validationtest"
)

// newCluster returns a new cluster with all defaults.
func newCluster() *object {
	o := &object{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "c"},
		Spec: v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-east", Storage: &v1alpha1.Storage{
			Resources: &v1alpha1.StorageResources{CPU: *quantity("1"), Memory: *quantity("4Gi")},
		}},
	}
	kind := newKind("")
	kind.Default(o)
	kind.PrepareCreate(context.Background(), o)
	return o
}

// instances contains one instance i of acme with this type; none if the type is empty.
type instances string

// Lookup implements Instances.
func (i instances) Lookup(_ context.Context, namespace, name string) (*v1alpha1.MessagingInstance, bool) {
	if i == "" || namespace != "acme" || name != "i" {
		return nil, false
	}
	return &v1alpha1.MessagingInstance{Spec: v1alpha1.MessagingInstanceSpec{
		Type: string(i), PoolRef: &v1alpha1.ObjectReference{Namespace: "cloud", Name: "shared"},
	}}, true
}

// newKind returns the kind with two pools and one instance of this type in the first; no instance if
// the type is empty.
func newKind(instanceType string) *Kind {
	kind := New(&pools.Plan{
		Domain: "streams.test",
		Pools: []pools.Pool{
			{
				Namespace: "cloud", Name: "shared",
				Members: []pools.Member{{Name: "east", Location: "us-east"}, {Name: "west", Location: "us-west"}},
			},
			{Namespace: "cloud", Name: "spare", Members: []pools.Member{{Name: "cellar", Location: "cellar"}}},
		},
		Images: map[string]pools.Images{
			"rapid": {Broker: "b:1", Storage: "s:1"},
			"lts":   {Broker: "b:0", Storage: "s:0"},
		},
	}, nil, nil)
	kind.Instances = instances(instanceType)
	return kind
}

func quantity(text string) *resource.Quantity { q := resource.MustParse(text); return &q }

func entries[V any](n int) map[string]V {
	m := map[string]V{}
	var zero V
	for i := range n {
		m[fmt.Sprint("k", i)] = zero
	}
	return m
}

func TestValidate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.MessagingClusterSpec
	broker := func(cpu, memory string) func(*spec) {
		return func(s *spec) {
			s.Broker.Resources = &v1alpha1.BrokerResources{CPU: *quantity(cpu), Memory: *quantity(memory)}
		}
	}
	percentages := func(heap, direct int32) func(*spec) {
		return func(s *spec) {
			s.Storage.Resources.HeapPercentage, s.Storage.Resources.DirectPercentage = heap, direct
		}
	}
	scaling := func(lowest, highest int32) func(*spec) {
		return func(s *spec) {
			s.Broker.AutoScalingPolicy = &v1alpha1.AutoScalingPolicy{MinReplicas: lowest, MaxReplicas: highest}
		}
	}
	audit := func(categories ...string) func(*spec) {
		return func(s *spec) {
			s.Config = &v1alpha1.ClusterConfig{AuditLog: &v1alpha1.AuditLog{Categories: categories}}
		}
	}
	window := func(recurrence, start string, duration time.Duration) func(*spec) {
		return func(s *spec) {
			s.MaintenanceWindow = &v1alpha1.MaintenanceWindow{
				Recurrence: recurrence,
				Window:     &v1alpha1.TimeWindow{StartTime: start, Duration: metav1.Duration{Duration: duration}},
			}
		}
	}
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"as created":          {func(*spec) {}, nil},
		"no instance":         {func(s *spec) { s.InstanceName = "" }, []string{"spec.instanceName: Required value"}},
		"impossible instance": {func(s *spec) { s.InstanceName = "I" }, []string{"spec.instanceName: Invalid value"}},
		"long display name": {
			func(s *spec) { s.DisplayName = strings.Repeat("x", 254) },
			[]string{"spec.displayName: Too long"},
		},
		"quotas of its own": {func(s *spec) {
			s.Config = &v1alpha1.ClusterConfig{Custom: map[string]string{
				"quota.topics":      "10",
				"quota.storedBytes": "5Gi",
			}}
		}, nil},
		"quotas that are no numbers": {func(s *spec) {
			s.Config = &v1alpha1.ClusterConfig{Custom: map[string]string{
				"quota.topics":      "0",
				"quota.storedBytes": "much",
			}}
		}, []string{
			"spec.config.custom[quota.storedBytes]: Invalid value",
			"spec.config.custom[quota.topics]: Invalid value",
		}},
		"lts channel": {func(s *spec) { s.ReleaseChannel = "lts" }, nil},
		"unknown channel": {
			func(s *spec) { s.ReleaseChannel = "beta" },
			[]string{"spec.releaseChannel: Unsupported value"},
		},
		"one broker": {func(s *spec) { s.Broker.Replicas = count(1) }, nil},
		"15 brokers": {func(s *spec) { s.Broker.Replicas = count(15) }, nil},
		"no broker":  {func(s *spec) { s.Broker.Replicas = count(0) }, []string{"spec.broker.replicas: Invalid value"}},
		"16 brokers": {
			func(s *spec) { s.Broker.Replicas = count(16) },
			[]string{"spec.broker.replicas: Invalid value"},
		},
		"15 storage nodes": {func(s *spec) { s.Storage.Replicas = count(15) }, nil},
		"2 storage nodes": {
			func(s *spec) { s.Storage.Replicas = count(2) },
			[]string{"spec.storage.replicas: Invalid value"},
		},
		"16 storage nodes": {
			func(s *spec) { s.Storage.Replicas = count(16) },
			[]string{"spec.storage.replicas: Invalid value"},
		},
		"smallest broker":             {broker("400m", "1.6Gi"), nil},
		"biggest broker":              {broker("16", "64Gi"), nil},
		"memory as a number of bytes": {broker("1", "4294967296"), nil},
		"too little CPU":              {broker("399m", "4Gi"), []string{"spec.broker.resources.cpu: Invalid value"}},
		"too much CPU":                {broker("16001m", "4Gi"), []string{"spec.broker.resources.cpu: Invalid value"}},
		"too little memory":           {broker("1", "1.5Gi"), []string{"spec.broker.resources.memory: Invalid value"}},
		"too much memory": {
			broker("1", "68719476737"),
			[]string{"spec.broker.resources.memory: Invalid value"},
		},
		"only one of both": {broker("1", "0"), []string{"spec.broker.resources.memory: Invalid value"}},
		"no sizes": {
			func(s *spec) { s.Broker.Resources = &v1alpha1.BrokerResources{} },
			[]string{"spec.broker.resources.cpu: Required value", "spec.broker.resources.memory: Required value"},
		},
		"all memory": {percentages(50, 50), nil},
		"more than all memory": {
			percentages(51, 50),
			[]string{"spec.storage.resources.directPercentage: Invalid value"},
		},
		"more heap than memory": {
			percentages(101, 0),
			[]string{"spec.storage.resources.heapPercentage: Invalid value"},
		},
		"less than nothing": {percentages(0, -1), []string{"spec.storage.resources.directPercentage: Invalid value"}},
		"disk of no size":   {func(s *spec) { s.Storage.Resources.LedgerDisk = quantity("0") }, nil},
		"negative ledger disk": {
			func(s *spec) { s.Storage.Resources.LedgerDisk = quantity("-1Gi") },
			[]string{"spec.storage.resources.ledgerDisk: Invalid value"},
		},
		"negative journal disk": {
			func(s *spec) { s.Storage.Resources.JournalDisk = quantity("-1Gi") },
			[]string{"spec.storage.resources.journalDisk: Invalid value"},
		},
		"scaling":                  {scaling(1, 15), nil},
		"scaling from the default": {scaling(0, 3), nil},
		"scaling upside down": {
			scaling(3, 2),
			[]string{"spec.broker.autoScalingPolicy.maxReplicas: Invalid value"},
		},
		"scaling without an end": {
			scaling(1, 0),
			[]string{"spec.broker.autoScalingPolicy.maxReplicas: Required value"},
		},
		"scaling from below": {scaling(-1, 3), []string{"spec.broker.autoScalingPolicy.minReplicas: Invalid value"}},
		"audit":              {audit("Management", "Describe", "Produce", "Consume"), nil},
		"audit of nothing":   {audit(), []string{"spec.config.auditLog.categories: Required value"}},
		"audit of something else": {
			audit("Management", "Everything"),
			[]string{"spec.config.auditLog.categories[1]: Unsupported value"},
		},
		"audit of an empty word": {audit(""), []string{"spec.config.auditLog.categories[0]: Required value"}},
		"audit of one thing twice": {
			audit("Produce", "Describe", "Produce"),
			[]string{"spec.config.auditLog.categories[2]: Duplicate value"},
		},
		"a catalogue twice": {
			func(s *spec) { s.Catalogs = []string{"a", "a"} },
			[]string{"spec.catalogs[1]: Duplicate value"},
		},
		"most protocols": {func(
			s *spec,
		) {
			s.Config = &v1alpha1.ClusterConfig{Protocols: entries[v1alpha1.ProtocolSettings](256)}
		}, nil},
		"too many protocols": {func(
			s *spec,
		) {
			s.Config = &v1alpha1.ClusterConfig{Protocols: entries[v1alpha1.ProtocolSettings](257)}
		}, []string{"spec.config.protocols: Too many"}},
		"too many properties": {func(
			s *spec,
		) {
			s.Config = &v1alpha1.ClusterConfig{Custom: entries[string](257)}
		}, []string{"spec.config.custom: Too many"}},
		"window": {window("0,6", "22:00", 3*time.Hour), nil},
		"window on an eighth day": {
			window("7", "22:00", 3*time.Hour),
			[]string{"spec.maintenanceWindow.recurrence: Unsupported value"},
		},
		"window more often than daily": {
			window("0,1,2,3,4,5,6,0", "22:00", time.Hour),
			[]string{"spec.maintenanceWindow.recurrence: Too many"},
		},
		"window at no time": {
			window("0", "24:00", time.Hour),
			[]string{"spec.maintenanceWindow.window.startTime: Invalid value"},
		},
		"window without an end": {
			window("0", "22:00", 25*time.Hour),
			[]string{"spec.maintenanceWindow.window.duration: Invalid value"},
		},
		"window of no length": {
			window("0", "22:00", 0),
			[]string{"spec.maintenanceWindow.window.duration: Invalid value"},
		},
		"toleration": {func(
			s *spec,
		) {
			s.Tolerations = []v1alpha1.Toleration{{Operator: "Exists", Effect: "NoExecute"}}
		}, nil},
		"unknown toleration": {
			func(s *spec) { s.Tolerations = []v1alpha1.Toleration{{}, {Operator: "Is", Effect: "Boom"}} },
			[]string{
				"spec.tolerations[1].effect: Unsupported value",
				"spec.tolerations[1].operator: Unsupported value",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newCluster()
			tc.change(&o.Spec)
			validationtest.Expect(t, newKind("").Validate(t.Context(), o), tc.want...)
		})
	}
}

// TestHostNames checks that a cluster cannot be created if its name makes no valid host
// name, and that existing clusters can still be changed.
func TestHostNames(t *testing.T) {
	t.Parallel()
	const invalid = "metadata.name: Invalid value"
	label := strings.Repeat("n", 63)
	tests := map[string]struct {
		name, namespace, domain string
		want                    []string
		message                 string
	}{
		"a label":             {"prod", "acme", "streams.test", nil, ""},
		"the longest label":   {label, label, "streams.test", nil, ""},
		"longer than a label": {label + "n", "acme", "streams.test", []string{invalid}, "no more than 63 characters"},
		"with a dot":          {"prod.eu", "acme", "streams.test", []string{invalid}, "no dots"},
		"long and with dots":  {label + ".n", "acme", "streams.test", []string{invalid}, "no dots"},
		"together longer than DNS": {
			label, label, label + "." + label + ".test",
			[]string{invalid},
			"more than 253 characters",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := newKind("standard")
			kind.plan.Domain = tc.domain
			o := newCluster()
			o.Name, o.Namespace = tc.name, tc.namespace
			kind.PrepareCreate(t.Context(), o)
			errs := kind.ValidateCreate(t.Context(), o)
			for _, problem := range kind.ValidateName(o.Name, false) {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.Name, problem))
			}
			validationtest.Expect(t, errs, tc.want...)
			if tc.message != "" && !strings.Contains(errs.ToAggregate().Error(), tc.message) {
				t.Errorf("message: got %q, want one with %q", errs.ToAggregate(), tc.message)
			}
			changed := o.DeepCopy()
			changed.Spec.DisplayName = "another"
			validationtest.Expect(t, kind.ValidateUpdate(t.Context(), changed, o))
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.MessagingClusterSpec
	lakehouse := func(s *spec) {
		s.Config = &v1alpha1.ClusterConfig{LakehouseStorage: &v1alpha1.LakehouseStorage{LakehouseType: "iceberg"}}
	}
	shards := func(n string) func(*spec) {
		return func(s *spec) { s.Config = &v1alpha1.ClusterConfig{Custom: map[string]string{"shards": n}} }
	}
	tests := map[string]struct {
		before, change func(*spec)
		want           []string
	}{
		"size, config and names": {nil, func(s *spec) {
			s.Broker.Replicas, s.Storage.Replicas, s.DisplayName = count(5), count(5), "five"
			s.Broker.Resources = &v1alpha1.BrokerResources{CPU: *quantity("2"), Memory: *quantity("8Gi")}
			s.Config = &v1alpha1.ClusterConfig{Custom: map[string]string{"a": "b"}}
		}, nil},
		"another instance": {nil, func(s *spec) { s.InstanceName = "j" }, []string{"spec.instanceName: Invalid value"}},
		"another place":    {nil, func(s *spec) { s.Location = "us-west" }, []string{"spec.location: Invalid value"}},
		"another member": {
			nil, func(s *spec) { s.PoolMemberRef.Name = "west" },
			[]string{"spec.poolMemberRef: Invalid value"},
		},
		"another channel": {
			nil, func(s *spec) { s.ReleaseChannel = "lts" },
			[]string{"spec.releaseChannel: Invalid value"},
		},
		"lakehouse on":      {nil, lakehouse, nil},
		"lakehouse changed": {lakehouse, func(s *spec) { s.Config.LakehouseStorage.LakehouseType = "delta" }, nil},
		"lakehouse off": {
			lakehouse, func(s *spec) { s.Config.LakehouseStorage = nil },
			[]string{"spec.config.lakehouseStorage: Forbidden"},
		},
		"other shards": {shards("4"), shards("8"), []string{"spec.config.custom[shards]: Invalid value"}},
		"shards later": {nil, shards("4"), []string{"spec.config.custom[shards]: Invalid value"}},
		"shards taken away": {
			shards("4"), func(s *spec) { s.Config = nil },
			[]string{"spec.config.custom[shards]: Invalid value"},
		},
		"shards as they are":                   {shards("4"), shards("4"), nil},
		"shards from before they were checked": {shards("many"), func(s *spec) { s.DisplayName = "x" }, nil},
		"lakehouse forgotten": {
			lakehouse, func(s *spec) { s.Config = nil },
			[]string{"spec.config.lakehouseStorage: Forbidden"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := newCluster()
			if tc.before != nil {
				tc.before(&old.Spec)
			}
			o := old.DeepCopy()
			tc.change(&o.Spec)
			validationtest.Expect(t, newKind("standard").ValidateUpdate(t.Context(), o, old), tc.want...)
		})
	}
}

func TestServerlessStaysServerless(t *testing.T) {
	t.Parallel()
	old := create(t, "serverless", v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-east"})
	o := old.DeepCopy()
	o.Spec.Broker.Replicas = count(5)
	o.Spec.Broker.Resources.Memory = *quantity("8Gi")
	o.Spec.Storage = &v1alpha1.Storage{}
	validationtest.Expect(t, newKind("serverless").ValidateUpdate(t.Context(), o, old),
		"spec.broker.replicas: Invalid value", "spec.broker.resources.memory: Invalid value", "spec.storage: Forbidden")

	// A cluster that was created before its instance can keep its spec.
	early := newCluster()
	validationtest.Expect(t, newKind("serverless").ValidateUpdate(t.Context(), early.DeepCopy(), early))
}

func TestValidateLocation(t *testing.T) {
	t.Parallel()
	member := func(name string) *v1alpha1.ObjectReference {
		return &v1alpha1.ObjectReference{Namespace: "cloud", Name: name}
	}
	tests := map[string]struct {
		instance, location string
		member             *v1alpha1.ObjectReference
		want               []string
	}{
		"by location":           {"standard", "us-west", nil, nil},
		"by member":             {"standard", "", member("west"), nil},
		"by both":               {"standard", "us-west", member("west"), nil},
		"before its instance":   {"", "cellar", nil, nil},
		"by nothing":            {"standard", "", nil, []string{"spec.location: Required value"}},
		"nowhere":               {"standard", "moon", nil, []string{"spec.location: Unsupported value"}},
		"in a pool of others":   {"standard", "cellar", nil, []string{"spec.location: Unsupported value"}},
		"on a member of others": {"standard", "", member("cellar"), []string{"spec.poolMemberRef: Invalid value"}},
		"on no member": {
			"standard", "us-west", member("gone"),
			[]string{"spec.poolMemberRef: Not found"},
		},
		"member at another place":    {"standard", "us-east", member("west"), []string{"spec.location: Invalid value"}},
		"serverless without storage": {"serverless", "us-east", nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newKind(tc.instance)
			o := &object{
				ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "c"},
				Spec: v1alpha1.MessagingClusterSpec{
					InstanceName: "i", Location: tc.location, PoolMemberRef: tc.member,
				},
			}
			c.Default(o)
			c.PrepareCreate(t.Context(), o)
			validationtest.Expect(t, c.ValidateCreate(t.Context(), o), tc.want...)
		})
	}
}

func TestShardsAreChecked(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"1": nil, "64": nil,
		"0": {"spec.config.custom[shards]: Invalid value"}, "65": {"spec.config.custom[shards]: Invalid value"},
		"-1": {"spec.config.custom[shards]: Invalid value"}, "four": {"spec.config.custom[shards]: Invalid value"},
		"": {"spec.config.custom[shards]: Invalid value"}, "04": {"spec.config.custom[shards]: Invalid value"},
		"4.0": {"spec.config.custom[shards]: Invalid value"},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			o := newCluster()
			o.Spec.Config = &v1alpha1.ClusterConfig{Custom: map[string]string{"shards": value}}
			validationtest.Expect(t, newKind("standard").ValidateCreate(t.Context(), o), want...)
		})
	}
}
