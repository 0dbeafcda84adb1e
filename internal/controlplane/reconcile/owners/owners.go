// Package owners writes the owner references that the service manages: the object is deleted
// together with its owner, and blocks the owner's deletion until then. Package garbage implements
// these effects.
package owners

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

// Add makes owner, an object of one of our kinds, the owner of obj. It reports whether obj has
// changed.
func Add(obj, owner metav1.Object, kind string) bool {
	refs := obj.GetOwnerReferences()
	if slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }) {
		return false
	}
	ref := metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind(kind))
	obj.SetOwnerReferences(append(slices.Clone(refs), *ref))
	return true
}

// UID returns the UID of obj's owner with this kind and name, or "".
func UID(obj metav1.Object, kind, name string) string {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == kind && ref.Name == name {
			return string(ref.UID)
		}
	}
	return ""
}
