package messagingcluster

import (
	"testing"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		base, instanceType   string
		byName, byPath, root string
	}{
		"standard": {
			"http://127.0.0.1:8080", v1alpha1.InstanceStandard,
			"http://c.acme.streams.test:8080", "http://127.0.0.1:8080/clusters/acme/c", "/stream",
		},
		"serverless": {
			"https://streams.test", v1alpha1.InstanceServerless,
			"https://c.acme.streams.test", "https://streams.test/clusters/acme/c", "",
		},
		"an IPv6 address": {
			"https://[::1]:8443", v1alpha1.InstanceStandard,
			"https://c.acme.streams.test:8443", "https://[::1]:8443/clusters/acme/c", "/stream",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster()
			instance := &v1alpha1.MessagingInstance{Spec: v1alpha1.MessagingInstanceSpec{Type: tc.instanceType}}
			cluster.Status.Endpoints = endpointsOf(&pools.Plan{BaseURL: tc.base}, cluster, instance)
			want := map[string]string{
				"service": "", "messages": "/admin/rest/topics/v1", "admin": "/admin/v2",
				"topics": "/rest-stream/admin/v1", "registry": tc.root,
			}
			if got := len(cluster.Status.Endpoints); got != len(want) {
				t.Errorf("got %d endpoints, want %d", got, len(want))
			}
			for _, got := range cluster.Status.Endpoints {
				path, known := want[got.Type]
				if want := (v1alpha1.ClusterEndpoint{
					Type: got.Type, URL: tc.byName + path,
					PathURL: tc.byPath + path,
				}); !known || got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
			if got := urlOf(cluster); got != tc.byPath {
				t.Errorf("URL column: got %q, want %q", got, tc.byPath)
			}
		})
	}
}
