// Package finalizers removes a controller's own finalizer from an object when the controller's work
// is done.
package finalizers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Has reports whether an object has a finalizer.
func Has(obj metav1.Object, finalizer string) bool {
	return slices.Contains(obj.GetFinalizers(), finalizer)
}

// Patch is the Patch method of a typed client.
type Patch[T any] func(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions,
	subresources ...string) (T, error)

// Remove removes the finalizer from the version of the object that the caller has read. It is no
// error if the object no longer exists.
func Remove[T any](ctx context.Context, obj metav1.Object, finalizer string, patch Patch[T]) error {
	kept := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             obj.GetUID(),
		"resourceVersion": obj.GetResourceVersion(),
		"finalizers":      kept,
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if _, err := patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("removing finalizer %s from %s: %w", finalizer, obj.GetName(), err)
	}
	return nil
}
