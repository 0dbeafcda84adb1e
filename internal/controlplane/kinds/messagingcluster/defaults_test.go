package messagingcluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

func create(t *testing.T, instance string, spec v1alpha1.MessagingClusterSpec) *object {
	t.Helper()
	o := &object{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "c"}, Spec: spec}
	kind := newKind(instance)
	kind.Default(o)
	kind.PrepareCreate(t.Context(), o)
	return o
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := create(t, "standard", v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-west"})
	s := o.Spec
	if s.ReleaseChannel != "rapid" || *s.Broker.Replicas != 1 || *s.Storage.Replicas != 1 {
		t.Errorf("got channel %s, %d brokers and %d storage nodes, want rapid, 1 and 1", s.ReleaseChannel,
			*s.Broker.Replicas, *s.Storage.Replicas)
	}
	if s.Broker.Resources != nil || s.Storage.Resources != nil {
		t.Errorf("resources: got %+v and %+v, want none", s.Broker.Resources, s.Storage.Resources)
	}
	if _, on := s.Config.Protocols[ProtocolStream]; !on || len(s.Config.Protocols) != 1 {
		t.Errorf("protocols: got %v, want stream", s.Config.Protocols)
	}
	if missing := withoutEffect(&s, 1, false); len(missing) > 0 {
		t.Errorf("the defaults request %q, which a single server does not provide", missing)
	}
	if s.Broker.Image != "b:1" || s.Storage.Image != "s:1" {
		t.Errorf("images: got %s and %s, want those of the channel", s.Broker.Image, s.Storage.Image)
	}
	if s.PoolMemberRef == nil || s.PoolMemberRef.Name != "west" || s.PoolMemberRef.Namespace != "cloud" {
		t.Errorf("pool member: got %v, want the one at the location", s.PoolMemberRef)
	}
	if len(s.ServiceEndpoints) != 1 || s.ServiceEndpoints[0].DNSName != "c.acme.streams.test" ||
		s.ServiceEndpoints[0].Type != "service" {
		t.Errorf("endpoints: got %+v, want c.acme.streams.test of type service", s.ServiceEndpoints)
	}
}

func TestDefaultsKeepExplicitValues(t *testing.T) {
	t.Parallel()
	o := create(t, "standard", v1alpha1.MessagingClusterSpec{
		InstanceName: "i", PoolMemberRef: &v1alpha1.ObjectReference{Name: "west"}, ReleaseChannel: "lts",
		Broker: v1alpha1.Broker{
			Replicas: count(7), ResourceSpec: &v1alpha1.BrokerResourceSpec{NodeType: "tiny"},
			Image: "mine",
		},
		Storage: &v1alpha1.Storage{Replicas: count(9)},
	})
	s := o.Spec
	if *s.Broker.Replicas != 7 || *s.Storage.Replicas != 9 || s.Broker.Resources != nil {
		t.Errorf("values in the spec have changed: %+v", s)
	}
	if s.Location != "us-west" || s.PoolMemberRef.Namespace != "cloud" {
		t.Errorf("got location %q and member %v, want both completed from the member", s.Location, s.PoolMemberRef)
	}
	if s.Broker.Image != "b:0" || s.Storage.Image != "s:0" {
		t.Errorf("images: got %q and %q, want those of the service", s.Broker.Image, s.Storage.Image)
	}
}

// ensemble is the plane of an ensemble with this number of members.
type ensemble struct {
	Plane
	members int
}

// Membership implements Plane.
func (e ensemble) Membership() (all, live int) { return e.members, e.members }

// TestDefaultReplicasAreWhatRuns checks that omitted replicas are those that the pool member runs, also when
// a replace omits them, and that a stored cluster without them keeps none.
func TestDefaultReplicasAreWhatRuns(t *testing.T) {
	t.Parallel()
	for members, want := range map[int][2]int32{1: {1, 1}, 3: {3, 3}, 5: {5, 3}} {
		kind := newKind("standard")
		kind.plane = ensemble{members: members}
		o := &object{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "c"},
			Spec:       v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-east"},
		}
		kind.Default(o)
		kind.PrepareCreate(t.Context(), o)
		if got := [2]int32{*o.Spec.Broker.Replicas, *o.Spec.Storage.Replicas}; got != want {
			t.Errorf("%d members: got %d brokers and storage nodes, want %d", members, got, want)
		}
		errs := append(kind.Validate(t.Context(), o), kind.ValidateCreate(t.Context(), o)...)
		if missing := withoutEffect(&o.Spec, int32(members), false); len(missing) > 0 || len(errs) > 0 {
			t.Errorf("%d members: got %q without effect and errors %v, want none", members, missing, errs)
		}
		replaced := o.DeepCopy()
		replaced.Spec.Broker.Replicas, replaced.Spec.Storage.Replicas = nil, nil
		kind.PrepareUpdate(t.Context(), replaced, o)
		if got := [2]int32{*replaced.Spec.Broker.Replicas, *replaced.Spec.Storage.Replicas}; got != want {
			t.Errorf("%d members, replace: got %d brokers and storage nodes, want %d", members, got, want)
		}
		o.Spec.Storage.Replicas, replaced.Spec.Storage.Replicas = nil, nil
		if kind.PrepareUpdate(t.Context(), replaced, o); replaced.Spec.Storage.Replicas != nil {
			t.Errorf("%d members: a change set the replicas of a cluster that had none", members)
		}
	}
}

// TestSingleCopy checks that only a single server accepts a cluster with a single copy, that such a cluster can
// still be changed in an ensemble, and that it has the default number of copies there.
func TestSingleCopy(t *testing.T) {
	t.Parallel()
	single, kind := newKind("standard"), newKind("standard")
	kind.plane = ensemble{members: 3}
	o := create(t, "standard", v1alpha1.MessagingClusterSpec{
		InstanceName: "i", Location: "us-east", Storage: &v1alpha1.Storage{Replicas: count(1)},
	})
	if errs := append(single.Validate(t.Context(), o), single.ValidateCreate(t.Context(), o)...); len(errs) > 0 {
		t.Errorf("single server: got %v, want no errors", errs)
	}
	if errs := append(kind.Validate(t.Context(), o), kind.ValidateCreate(t.Context(), o)...); len(errs) != 1 {
		t.Errorf("ensemble: got %v, want an error of the replicas", errs)
	}
	if errs := append(kind.Validate(t.Context(), o), kind.ValidateUpdate(t.Context(), o, o)...); len(errs) > 0 {
		t.Errorf("change in an ensemble: got %v, want no errors", errs)
	}
	if got := copiesOf(o); got != 3 {
		t.Errorf("copies in an ensemble: got %d, want 3", got)
	}
}

// TestDefaultProtocols checks which protocols a new cluster has, and that a stored cluster without protocols
// stays without them.
func TestDefaultProtocols(t *testing.T) {
	t.Parallel()
	stream := v1alpha1.ProtocolSettings{Raw: []byte("{}")}
	type protocols = map[string]v1alpha1.ProtocolSettings
	for name, tc := range map[string]struct {
		config *v1alpha1.ClusterConfig
		want   bool
	}{
		"no config":    {nil, true},
		"no protocols": {&v1alpha1.ClusterConfig{}, true},
		"none":         {&v1alpha1.ClusterConfig{Protocols: protocols{}}, false},
		"null":         {&v1alpha1.ClusterConfig{Protocols: protocols{"stream": {}}}, false},
		"others":       {&v1alpha1.ClusterConfig{Protocols: protocols{"mqtt": stream}}, false},
		"stream":       {&v1alpha1.ClusterConfig{Protocols: protocols{"stream": stream}}, true},
	} {
		o := create(t, "standard", v1alpha1.MessagingClusterSpec{
			InstanceName: "i", Location: "us-east", Config: tc.config.DeepCopy(),
		})
		if got := servesKafka(o); got != tc.want {
			t.Errorf("%s: got stream %v, want %v", name, got, tc.want)
		}
	}
	stored := &object{Spec: v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-east"}}
	kind := newKind("standard")
	kind.Default(stored)
	kind.PrepareUpdate(t.Context(), stored, stored.DeepCopy())
	if servesKafka(stored) {
		t.Error("a stored cluster without protocols got one")
	}
}

// TestDisksLimitStoredBytes checks which sizes of disks limit the stored bytes, and which fields are reported
// as having no effect.
func TestDisksLimitStoredBytes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ledger, journal string
		want            int64
		missing         int
	}{
		"no disks":      {"", "", 0, 2},
		"ledger":        {"1Gi", "", 1 << 30, 2},
		"both":          {"1Gi", "1Ki", 1<<30 + 1<<10, 2},
		"journal alone": {"", "1Ki", 0, 3},
		"default sizes": {"0", "0", 0, 2},
		"part of bytes": {"1500m", "", 2, 2},
		"enormous":      {"8Ei", "8Ei", 1 << 60, 2},
	} {
		r := &v1alpha1.StorageResources{CPU: *quantity("1"), Memory: *quantity("4Gi")}
		if tc.ledger != "" {
			r.LedgerDisk = quantity(tc.ledger)
		}
		if tc.journal != "" {
			r.JournalDisk = quantity(tc.journal)
		}
		o := create(t, "standard", v1alpha1.MessagingClusterSpec{
			InstanceName: "i", Location: "us-east", Storage: &v1alpha1.Storage{Resources: r},
		})
		if got := storedBytesOf(o); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
		if missing := withoutEffect(&o.Spec, 1, false); len(missing) != tc.missing {
			t.Errorf("%s: got %q without effect, want %d fields", name, missing, tc.missing)
		}
	}
}

func TestServerlessHasNoStorage(t *testing.T) {
	t.Parallel()
	o := create(t, "serverless", v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-east"})
	if o.Spec.Storage != nil {
		t.Errorf("storage: got %+v, want none", o.Spec.Storage)
	}
}

func TestReplacePreservesServiceFields(t *testing.T) {
	t.Parallel()
	old := create(t, "standard", v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "us-east"})
	o := &object{Spec: v1alpha1.MessagingClusterSpec{
		InstanceName:     "i",
		ServiceEndpoints: []v1alpha1.ServiceEndpoint{{DNSName: "mine.example.com"}},
		Broker:           v1alpha1.Broker{Image: "mine"},
	}}
	kind := newKind("standard")
	kind.Default(o)
	kind.PrepareUpdate(t.Context(), o, old)
	if o.Spec.Location != "us-east" || o.Spec.PoolMemberRef == nil || o.Spec.Storage == nil {
		t.Errorf("fields that the replace omitted are lost: %+v", o.Spec)
	}
	if o.Spec.Broker.Image != "b:1" || o.Spec.ServiceEndpoints[0].DNSName != "c.acme.streams.test" {
		t.Errorf("fields that the service sets have changed: %+v", o.Spec)
	}
}
