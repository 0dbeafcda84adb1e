package store

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
)

// reservation holds the limiter's reservation for the object that one call creates. The API
// machinery may run the validation more than once and writes only afterwards, so the reservation is
// kept until the call ends.
type reservation struct{ done func() }

func (r *reservation) release() {
	if r.done != nil {
		r.done()
	}
}

// reserve calls the kind's Limiter, once per call.
func (g *Authorized[T]) reserve(ctx context.Context, object T, reserved *reservation) error {
	if g.kind.Limiter == nil || reserved.done != nil {
		return nil
	}
	done, err := g.kind.Limiter.Reserve(ctx, object)
	switch {
	case err == nil:
		reserved.done = done
		return nil
	case errs.KindOf(err) == errs.Exhausted:
		return apierrors.NewForbidden(v1alpha1.Resource(g.kind.info.Plural), object.GetName(), err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTooManyRequests("other objects of this organization are being created; retry", 1)
	}
	return err
}

// Count returns the number of objects in a namespace, including those that are being deleted.
func (r *Resource[T]) Count(ctx context.Context, namespace string) (int64, error) {
	if r.store == nil {
		return 0, nil
	}
	list, err := r.store.List(request.WithNamespace(ctx, namespace), &metav1internal.ListOptions{})
	if err != nil {
		return 0, err
	}
	return int64(meta.LenList(list)), nil
}
