package registry

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// settleOwners keeps the link between an object and its owner to the service,
// which alone makes and cuts it: a replace that does not repeat it does not
// loosen it, and an object copied from elsewhere does not bring the owner of its
// former life along. Other owners are the caller's affair.
func (s strategy[T]) settleOwners(ctx context.Context, object T, before []metav1.OwnerReference) {
	if s.kind.Owner == "" || byService(ctx) {
		return
	}
	linked := slices.DeleteFunc(slices.Clone(before), func(r metav1.OwnerReference) bool { return r.Kind != s.kind.Owner })
	var refs []metav1.OwnerReference
	for _, ref := range object.GetOwnerReferences() {
		if ref.Kind != s.kind.Owner {
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

// byService knows the service's own calls by the group that nobody else gets.
func byService(ctx context.Context) bool {
	info, ok := request.UserFrom(ctx)
	return !ok || slices.Contains(info.GetGroups(), user.SystemPrivilegedGroup)
}

// checkOwners looks at a change of owners. An object goes with its owners, so
// choosing others is deleting it by another way; and one that blocks an owner's
// deletion has a say in that owner's life.
func (d doorman[T]) checkOwners(ctx context.Context, object, before T) error {
	if d.open() {
		return nil
	}
	refs, had := object.GetOwnerReferences(), before.GetOwnerReferences()
	if apiequality.Semantic.DeepEqual(refs, had) {
		return nil
	}
	if err := d.check(ctx, "delete", before); err != nil {
		return err
	}
	return d.checkBlocking(ctx, object, had)
}

// checkBlocking asks about every owner that an object newly blocks.
func (d doorman[T]) checkBlocking(ctx context.Context, object T, had []metav1.OwnerReference) error {
	if d.open() || byService(ctx) {
		return nil
	}
	for _, ref := range object.GetOwnerReferences() {
		if !blocks(ref) || slices.ContainsFunc(had, func(r metav1.OwnerReference) bool { return r.UID == ref.UID && blocks(r) }) {
			continue
		}
		if ref.Kind == d.kind.Owner {
			continue // the service's own link
		}
		if err := d.gate.CheckOwner(ctx, object.GetNamespace(), ref); err != nil {
			return err
		}
	}
	return nil
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
