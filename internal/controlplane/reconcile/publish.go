package reconcile

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
)

// Publisher writes one kind, as the typed clients do.
type Publisher[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	UpdateStatus(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// Published is an object that comes with the service.
type Published[T metav1.Object] struct {
	// Want is the object as it is to be.
	Want T
	// Take brings what is stored to that, and reports whether it was not so.
	Take func(have T) bool
	// Conditions of an object, within it.
	Conditions func(object T) *[]v1alpha1.Condition
	// Status, when set, writes the rest of an object's first status.
	Status func(object T)
}

// Publish writes an object that comes with the service: it creates it, or brings
// what is stored up to date, so that only a first start and an upgrade have
// something to write.
func Publish[T metav1.Object](ctx context.Context, api Publisher[T], p Published[T]) error {
	have, err := api.Get(ctx, p.Want.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return PublishOver(ctx, api, p, have, err == nil)
}

// PublishOver is Publish for who knows what is stored, if anything is.
func PublishOver[T metav1.Object](ctx context.Context, api Publisher[T], p Published[T], have T,
	stored bool,
) (err error) {
	switch {
	case !stored:
		have, err = api.Create(ctx, p.Want, metav1.CreateOptions{})
	case p.Take(have):
		have, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	list := p.Conditions(have)
	if len(*list) > 0 {
		return nil
	}
	*list = conditions.Published(have.GetGeneration())
	if p.Status != nil {
		p.Status(have)
	}
	_, err = api.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}
