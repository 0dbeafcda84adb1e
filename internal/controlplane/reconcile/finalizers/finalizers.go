// Package finalizers takes a controller's own finalizer off an object when its
// work is done.
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

// Has says whether an object carries a finalizer.
func Has(obj metav1.Object, finalizer string) bool {
	return slices.Contains(obj.GetFinalizers(), finalizer)
}

// Patch is the typed client's method of any kind.
type Patch[T any] func(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions,
	subresources ...string) (T, error)

// Remove takes the finalizer off the very version of the object that was
// looked at; an object that is gone already is fine.
func Remove[T any](ctx context.Context, obj metav1.Object, finalizer string, patch Patch[T]) error {
	kept := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             obj.GetUID(),
		"resourceVersion": obj.GetResourceVersion(),
		"finalizers":      kept,
	}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	if _, err := patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("removing finalizer %s of %s: %w", finalizer, obj.GetName(), err)
	}
	return nil
}
