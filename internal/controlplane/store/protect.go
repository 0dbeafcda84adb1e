package store

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"freshet/api/v1alpha1"
)

// Protected reports whether an object has the annotation that prevents its deletion, with any value
// except "false".
func Protected(object metav1.Object) bool {
	value, ok := object.GetAnnotations()[v1alpha1.AnnotationDestroyProtected]
	return ok && value != "false"
}

// ProtectedError is returned for deleting a protected object.
func ProtectedError(resource schema.GroupResource, name string) error {
	return apierrors.NewConflict(resource, name, fmt.Errorf(
		"object is protected; set the annotation %s to \"false\" to delete it", v1alpha1.AnnotationDestroyProtected))
}
