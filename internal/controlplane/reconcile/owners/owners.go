// Package owners links an object to the one that the service makes its owner:
// the object goes when the owner goes, and holds the owner up until then. What
// follows from the link is ../garbage's business.
package owners

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

// Add makes owner, an object of a kind of ours, the owner of obj. It says
// whether that was news.
func Add(obj, owner metav1.Object, kind string) bool {
	refs := obj.GetOwnerReferences()
	if slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }) {
		return false
	}
	ref := metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind(kind))
	obj.SetOwnerReferences(append(slices.Clone(refs), *ref))
	return true
}

// UID is the owner's of a kind and name; empty when obj has none.
func UID(obj metav1.Object, kind, name string) string {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == kind && ref.Name == name {
			return string(ref.UID)
		}
	}
	return ""
}
