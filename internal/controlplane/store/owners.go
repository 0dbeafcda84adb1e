package store

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/controlplane/caller"
)

// preserveServiceOwner lets only the service set and remove the owner reference that it manages. A
// replace that omits the reference does not remove it, and a copied object does not bring along the
// owner of its original. Callers may change all other owner references.
func (s strategy[T]) preserveServiceOwner(ctx context.Context, object T, before []metav1.OwnerReference) {
	if s.kind.info.Owner == "" || caller.ByService(ctx) {
		return
	}
	linked := slices.DeleteFunc(slices.Clone(before),
		func(r metav1.OwnerReference) bool { return r.Kind != s.kind.info.Owner })
	var refs []metav1.OwnerReference
	for _, ref := range object.GetOwnerReferences() {
		if ref.Kind != s.kind.info.Owner {
			refs = append(refs, ref)
			continue
		}
		if i := slices.IndexFunc(linked, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }); i >= 0 {
			refs = append(refs, linked[i])
			linked = slices.Delete(linked, i, i+1)
		}
	}
	object.SetOwnerReferences(append(refs, linked...))
}

// checkOwners checks a change of owner references. The garbage collector deletes an object together
// with its owners, so setting other owners can delete the object. It therefore requires the
// permission to delete, and everything that rejects a deletion rejects this change. An object that
// blocks the deletion of an owner also affects that owner, which checkBlocking checks.
func (a authorization[T]) checkOwners(ctx context.Context, object, before T) error {
	if a.allowsAll() {
		return nil
	}
	refs, had := object.GetOwnerReferences(), before.GetOwnerReferences()
	if apiequality.Semantic.DeepEqual(refs, had) {
		return nil
	}
	if err := a.check(ctx, "delete", before); err != nil {
		return err
	}
	if err := a.checkDeletable(ctx, before, refs); err != nil {
		return err
	}
	return a.checkBlocking(ctx, object, had)
}

// checkDeletable checks whether the kind would allow the garbage collector to delete the object
// now. An object without owners cannot be collected, and owner references set by the service are
// not a request to delete.
func (a authorization[T]) checkDeletable(ctx context.Context, before T, refs []metav1.OwnerReference) error {
	if len(refs) == 0 || a.kind.DeleteValidator == nil || caller.ByService(ctx) {
		return nil
	}
	background := metav1.DeletePropagationBackground
	return a.kind.DeleteValidator.ValidateDelete(ctx, before, &metav1.DeleteOptions{PropagationPolicy: &background})
}

// checkBlocking checks the permission for every owner whose deletion the object newly blocks.
func (a authorization[T]) checkBlocking(ctx context.Context, object T, had []metav1.OwnerReference) error {
	if a.allowsAll() || caller.ByService(ctx) {
		return nil
	}
	for _, ref := range object.GetOwnerReferences() {
		if !blocks(ref) || slices.ContainsFunc(had,
			func(r metav1.OwnerReference) bool { return r.UID == ref.UID && blocks(r) }) {
			continue
		}
		if ref.Kind == a.kind.info.Owner {
			continue // the reference that the service manages
		}
		if err := a.authorizer.AuthorizeBlocking(ctx, object.GetNamespace(), ref); err != nil {
			return err
		}
	}
	return nil
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
