package store

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMetaLimits(t *testing.T) {
	t.Parallel()
	with := func(n int) *metav1.ObjectMeta {
		o := &metav1.ObjectMeta{}
		for i := range n {
			o.Finalizers = append(o.Finalizers, fmt.Sprint("f/", i))
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{Name: fmt.Sprint(i)})
		}
		return o
	}
	var none *metav1.ObjectMeta
	for _, tc := range []struct {
		name           string
		object, before *metav1.ObjectMeta
		want           int
	}{
		{"few", with(100), none, 0},
		{"too many finalizers and owners", with(101), none, 2},
		{"too many as before", with(101), with(101), 0},
		{"more than before", with(102), with(101), 2},
		{"fewer than before", with(101), with(102), 0},
	} {
		if got := checkMetaLimits(tc.object, tc.before); len(got) != tc.want {
			t.Errorf("%s: got %v, want %d errors", tc.name, got, tc.want)
		}
	}
}
