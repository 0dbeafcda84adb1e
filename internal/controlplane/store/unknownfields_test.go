package store

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

func TestUnknownFieldsInEmptyObjects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object Object
		fields string
		want   string
	}{
		"in an empty spec": {&v1alpha1.ServiceAccount{}, `{"f:spec":{"f:surplus":{}}}`, "spec.surplus"},
		"in an empty setting": {
			&v1alpha1.MessagingInstance{}, `{"f:spec":{"f:auth":{"f:apikey":{"f:size":{}}}}}`,
			"spec.auth.apikey.size",
		},
		"settings are free": {
			&v1alpha1.MessagingCluster{},
			`{"f:spec":{"f:config":{"f:protocols":{"f:stream":{"f:x":{}}}}}}`, "",
		},
		"nothing unknown": {
			&v1alpha1.MessagingCluster{},
			`{"f:spec":{"f:config":{"f:protocols":{"f:stream":{}}},"f:location":{}}}`, "",
		},
		"labels are free": {&v1alpha1.ServiceAccount{}, `{"f:metadata":{"f:labels":{"f:anything":{}}}}`, ""},
		"keyed lists are entered": {
			&v1alpha1.ServiceAccount{},
			`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}`, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.object.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(tc.fields),
			}})
			errs := unknownFields(tc.object)
			got := ""
			if len(errs) > 0 {
				got = errs[0].Field
			}
			if got != tc.want {
				t.Errorf("got field %q, want %q", got, tc.want)
			}
		})
	}
}

// TestKindsWithEmptyObjects checks which kinds have empty structs, in which the API machinery would
// accept any field of an apply.
func TestKindsWithEmptyObjects(t *testing.T) {
	t.Parallel()
	for object, want := range map[Object]bool{
		&v1alpha1.ServiceAccount{}: true, &v1alpha1.MessagingInstance{}: true,
		&v1alpha1.MessagingCluster{}: false, &v1alpha1.User{}: false, &v1alpha1.APIKey{}: false,
	} {
		if got := hasEmptyObjects(reflect.TypeOf(object), map[reflect.Type]bool{}); got != want {
			t.Errorf("%T: got empty structs %t, want %t", object, got, want)
		}
	}
}
