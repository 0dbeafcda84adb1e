package store

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/controlplane/caller"
)

// keepServiceOwner keeps the link between an object and its owner to the service,
// which alone makes and cuts it: a replace that does not repeat it does not
// loosen it, and an object copied from elsewhere does not bring the owner of its
// former life along. Other owners are the caller's affair.
func (s strategy[T]) keepServiceOwner(ctx context.Context, object T, before []metav1.OwnerReference) {
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

// checkOwners looks at a change of owners. An object goes with its owners, so
// choosing others is deleting it by another way: it needs the permission to
// delete, and whatever refuses a deletion refuses this. An object that blocks an
// owner's deletion has a say in that owner's life.
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

// checkDeletable asks the kind whether the object could be deleted now, as the
// garbage collector would. Without owners nothing can take it along, and links
// that the service makes itself are no wish to delete.
func (a authorization[T]) checkDeletable(ctx context.Context, before T, refs []metav1.OwnerReference) error {
	if len(refs) == 0 || a.kind.deleteValidator == nil || caller.ByService(ctx) {
		return nil
	}
	background := metav1.DeletePropagationBackground
	return a.kind.deleteValidator.ValidateDelete(ctx, before, &metav1.DeleteOptions{PropagationPolicy: &background})
}

// checkBlocking asks about every owner that an object newly blocks.
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
			continue // the service's own link
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
