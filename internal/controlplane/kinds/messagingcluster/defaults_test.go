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
	if s.ReleaseChannel != "rapid" || *s.Broker.Replicas != 2 || *s.Storage.Replicas != 3 {
		t.Errorf("got channel %s, %d brokers and %d storage nodes, want rapid, 2 and 3", s.ReleaseChannel,
			*s.Broker.Replicas, *s.Storage.Replicas)
	}
	if r := s.Broker.Resources; r.CPU.String() != "1" || r.Memory.String() != "4Gi" {
		t.Errorf("broker resources: got %s and %s, want 1 and 4Gi", r.CPU.String(), r.Memory.String())
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
