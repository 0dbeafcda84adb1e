package organizations

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
)

// Admission creates the organization when its first object is created. It runs when the object is
// valid and permitted, just before it is stored.
type Admission struct {
	*Organizations
	// AutoCreate lets callers create an organization by creating an object in it; without it only
	// the service can. A caller gets a warning in this case, because the name may be mistyped.
	AutoCreate bool
}

var _ admission.ValidationInterface = Admission{}

// Handles implements admission.Interface.
func (Admission) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Validate implements admission.ValidationInterface.
func (a Admission) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	name := attributes.GetNamespace()
	if name == "" || attributes.GetResource().Group != v1alpha1.GroupName || attributes.GetSubresource() != "" {
		return nil
	}
	exists, err := a.Has(ctx, name)
	if exists || err != nil {
		return err
	}
	byCaller := caller.Principal(ctx) != nil
	if byCaller && !a.AutoCreate {
		rejection := apierrors.NewNotFound(corev1.Resource("namespaces"), name)
		rejection.ErrStatus.Message = fmt.Sprintf(
			"organization %q does not exist, and organizations.autoCreate is false; "+
				"ask a system administrator to create it with kubectl create namespace %s", name, name)
		return rejection
	}
	if byCaller {
		warning.AddWarning(ctx, "", fmt.Sprintf("organization %q did not exist and is created by this request; "+
			"if the name is a mistake, delete the created object and then the namespace", name))
	}
	if attributes.IsDryRun() {
		return nil
	}
	_, err = a.Ensure(ctx, name)
	return err
}
