package reconcile

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
)

// Publisher writes one kind, like the typed clients.
type Publisher[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	UpdateStatus(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// Published is an object that the service creates.
type Published[T metav1.Object] interface {
	// Want returns the desired object.
	Want() T
	// Sync changes the stored object to the desired state, and reports whether it has changed.
	Sync(stored T) bool
	// Describe writes the first status of a stored object, and reports whether it had none.
	Describe(stored T) bool
}

// Replace sets a part of a stored object, such as its spec, to the desired value, and reports whether
// that changes it. It implements the Sync of most objects.
func Replace[S any](stored *S, want S) bool {
	changed := !apiequality.Semantic.DeepEqual(*stored, want)
	*stored = want
	return changed
}

// Describe writes the first conditions of an object, and reports whether it had none. It implements the
// Describe of most objects.
func Describe(list *[]v1alpha1.Condition, generation int64) bool {
	if len(*list) > 0 {
		return false
	}
	*list = conditions.Published(generation)
	return true
}

// Publish creates an object, or updates the stored one if it differs. It writes only at the first
// start and after an upgrade.
func Publish[T metav1.Object](ctx context.Context, api Publisher[T], p Published[T]) error {
	existing, err := api.Get(ctx, p.Want().GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return PublishExisting(ctx, api, p, existing, err == nil)
}

// PublishExisting is Publish for callers that have already read the stored object, if there is one.
func PublishExisting[T metav1.Object](ctx context.Context, api Publisher[T], p Published[T], existing T,
	stored bool,
) (err error) {
	switch {
	case !stored:
		existing, err = api.Create(ctx, p.Want(), metav1.CreateOptions{})
	case p.Sync(existing):
		existing, err = api.Update(ctx, existing, metav1.UpdateOptions{})
	}
	if err != nil || !p.Describe(existing) {
		return err
	}
	_, err = api.UpdateStatus(ctx, existing, metav1.UpdateOptions{})
	return err
}
