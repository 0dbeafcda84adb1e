package store

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits for the number of entries in an object's metadata. The size limit alone would allow
// thousands of owners, each of which is looked up, and of finalizers, each of which delays
// deletion. Labels and annotations cost only their size.
const (
	maxFinalizers = 100
	maxOwners     = 100
)

// checkMetaLimits rejects metadata with too many entries. An object that already has too many may be
// changed if the number does not grow.
func checkMetaLimits(object, before metav1.Object) field.ErrorList {
	var had metav1.Object = &metav1.ObjectMeta{}
	if v := reflect.ValueOf(before); v.IsValid() && !v.IsNil() {
		had = before
	}
	var errs field.ErrorList
	for _, part := range []struct {
		name           string
		has, had, most int
	}{
		{"finalizers", len(object.GetFinalizers()), len(had.GetFinalizers()), maxFinalizers},
		{"ownerReferences", len(object.GetOwnerReferences()), len(had.GetOwnerReferences()), maxOwners},
	} {
		if part.has > part.most && part.has > part.had {
			errs = append(errs, field.TooMany(field.NewPath("metadata", part.name), part.has, part.most))
		}
	}
	return errs
}
