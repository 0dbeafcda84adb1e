package store

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"freshet/api/v1alpha1"
)

// BenchmarkList encodes a list of 1,000 items as a JSON response, with and without the kind and
// apiVersion of every item (docs/spec/resources.md#r16).
func BenchmarkList(b *testing.B) {
	list := &v1alpha1.UserList{TypeMeta: metav1.TypeMeta{Kind: "UserList", APIVersion: "cloud.vendor.io/v1alpha1"}}
	for i := range 1000 {
		name := fmt.Sprintf("user-%d", i)
		list.Items = append(list.Items, v1alpha1.User{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "acme", UID: "00000000-0000-0000-0000-000000000000",
				ResourceVersion: fmt.Sprint(i), Generation: 1,
				CreationTimestamp: metav1.Unix(1_700_000_000, 0),
				Finalizers:        []string{"user.finalizers.cloud.vendor.io"},
			},
			Spec: v1alpha1.UserSpec{Email: name + "@example.com"},
			Status: v1alpha1.UserStatus{Conditions: []v1alpha1.Condition{
				{Type: "Active", Status: "False", Reason: "NoSignIn", Message: "this server has no sign-in for people"},
				{Type: "Ready", Status: "False", Reason: "NoSignIn", Message: "this server has no sign-in for people"},
			}},
		})
	}
	users := &kind[*v1alpha1.User]{info: Info{Kind: "User"}}
	encoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil,
		json.SerializerOptions{StreamingCollectionsEncoding: true})
	for name, prepare := range map[string]func(runtime.Object) runtime.Object{
		"named":   users.withTypeMeta,
		"unnamed": func(list runtime.Object) runtime.Object { return list },
	} {
		b.Run(name, func(b *testing.B) {
			for i := range list.Items {
				list.Items[i].TypeMeta = metav1.TypeMeta{}
			}
			b.ReportAllocs()
			var size counter
			for b.Loop() {
				size = 0
				if err := encoder.Encode(prepare(list), &size); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "bytes/list")
		})
	}
}

// counter counts the bytes written.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
