package store

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"freshet/api/v1alpha1"
)

// Protected says whether an object carries the annotation that refuses its
// deletion: present, and not "false".
func Protected(object metav1.Object) bool {
	value, ok := object.GetAnnotations()[v1alpha1.AnnotationDestroyProtected]
	return ok && value != "false"
}

// ProtectedError is the answer to deleting a protected object.
func ProtectedError(resource schema.GroupResource, name string) error {
	return apierrors.NewConflict(resource, name, fmt.Errorf(
		"it is protected: set the annotation %s to \"false\" to delete it", v1alpha1.AnnotationDestroyProtected))
}
