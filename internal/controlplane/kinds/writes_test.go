package kinds_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"freshet/api/v1alpha1"
)

// TestWritesPerObject counts the writes of an object from its creation until its reconciler is done.
// Everything that follows from the object alone is in the first write. A second write is needed
// where a condition promises that the object is already in effect, which is true only after the
// first, and where the specification requires an empty status in the response of the creation.
func TestWritesPerObject(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	f.createInstance("prod")
	for _, tc := range []struct {
		resource, spec string
		settled        string // the condition Ready or Issued after the last write
		writes         int64
		atOnce         bool // a delete call is a single write, too
	}{
		{"users", `{"email":"ann@example.org"}`, "False NotInvited", 2, true},
		{
			"serviceaccountbindings",
			`{"serviceAccountName":"ci","poolMemberRef":{"namespace":"default","name":"local"}}`,
			"True AllConditionStatusTrue", 1, true,
		},
		{"apikeys", `{"serviceAccountName":"ci","instanceName":"prod"}`, "True Issued", 1, true},
		{
			"rolebindings", `{"roleRef":{"kind":"ClusterRole","name":"org-admin"}}`,
			"True AllConditionStatusTrue", 2, true,
		},
		{"serviceaccounts", `{}`, "True Provisioned", 2, false},
		{"messaginginstances", `{}`, "True AllConditionStatusTrue", 2, false},
	} {
		t.Run(tc.resource, func(t *testing.T) {
			t.Parallel()
			f := fixture{t, f.System}
			f.create(tc.resource, "one", tc.spec)
			f.Eventually(tc.resource+" one is settled",
				func() bool { return f.state(tc.resource, "one") == tc.settled })
			f.create(tc.resource, "two", tc.spec) // when the controller is done with two, it is done with one
			f.Eventually(tc.resource+" two is settled",
				func() bool { return f.state(tc.resource, "two") == tc.settled })
			if got := f.Writes(t, "/freshet/resources/cloud.vendor.io/"+tc.resource+"/acme/one"); got != tc.writes {
				t.Errorf("%s: got %d writes, want %d", tc.resource, got, tc.writes)
			}
			if tc.atOnce {
				f.deletesInOneWrite(tc.resource, "one")
			}
		})
	}
}

func (f fixture) createInstance(name string) {
	f.Helper()
	_, err := f.Admin.CloudV1alpha1().MessagingInstances("acme").Create(f.Context(),
		&v1alpha1.MessagingInstance{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) create(resource, name, spec string) {
	f.Helper()
	body := `{"metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	err := f.Admin.CloudV1alpha1().RESTClient().Post().Namespace("acme").Resource(resource).
		Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(f.Context()).Error()
	if err != nil {
		f.Fatalf("%s: %v", resource, err)
	}
}

// deletesInOneWrite deletes an object and checks that a watch shows no event before its deletion.
func (f fixture) deletesInOneWrite(resource, name string) {
	f.Helper()
	client := f.Admin.CloudV1alpha1().RESTClient()
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + name, Watch: true}
	w, err := client.Get().Namespace("acme").Resource(resource).VersionedParams(&options,
		metav1.ParameterCodec).Watch(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	defer w.Stop()
	if first := <-w.ResultChan(); first.Type != watch.Added {
		f.Fatalf("%s: first event of the watch: got %+v, want the object", resource, first)
	}
	if err := client.Delete().Namespace("acme").Resource(resource).Name(name).Do(f.Context()).Error(); err != nil {
		f.Fatal(err)
	}
	if next := <-w.ResultChan(); next.Type != watch.Deleted {
		f.Errorf("%s: next event of the watch: got %s, want DELETED", resource, next.Type)
	}
}
