package reconcile

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusWriter writes the status of one kind, like the typed clients.
type StatusWriter[T any] interface {
	UpdateStatus(ctx context.Context, object *T, options metav1.UpdateOptions) (*T, error)
}

// WriteStatus stores a status if it differs from the object's, to which current points, and updates
// the object for the next write.
func WriteStatus[T, S any](ctx context.Context, api StatusWriter[T], object *T, current *S, status S) error {
	if apiequality.Semantic.DeepEqual(*current, status) {
		return nil
	}
	*current = status
	out, err := api.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	*object = *out
	return nil
}
