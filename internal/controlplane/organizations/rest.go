package organizations

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/internal/controlplane/caller"
)

// REST is the resource namespaces: get, list, watch, create and delete. There are no updates. The
// handler chain has checked the permission for the call; this type limits lists and watches to the
// organizations that the caller may see.
type REST struct {
	*list
	contents Contents
}

type list = Organizations

// Contents reads the objects of organizations.
type Contents interface {
	// Sample lists some objects of an organization, as resource/name, for error messages; the list
	// is empty if there are none.
	Sample(ctx context.Context, organization string) ([]string, error)
}

var (
	_ rest.Getter               = REST{}
	_ rest.Lister               = REST{}
	_ rest.Watcher              = REST{}
	_ rest.Creater              = REST{}
	_ rest.GracefulDeleter      = REST{}
	_ rest.Scoper               = REST{}
	_ rest.ShortNamesProvider   = REST{}
	_ rest.SingularNameProvider = REST{}
)

// REST creates the resource.
func (o *Organizations) REST(contents Contents) REST { return REST{o, contents} }

// New implements rest.Storage.
func (r REST) New() runtime.Object { return r.store.New() }

// NewList implements rest.Lister.
func (r REST) NewList() runtime.Object { return r.store.NewList() }

// Destroy implements rest.Storage.
func (r REST) Destroy() { r.store.Destroy() }

// NamespaceScoped implements rest.Scoper.
func (REST) NamespaceScoped() bool { return false }

// ShortNames implements rest.ShortNamesProvider.
func (REST) ShortNames() []string { return []string{"ns"} }

// GetSingularName implements rest.SingularNameProvider.
func (REST) GetSingularName() string { return "namespace" }

// ConvertToTable implements rest.TableConvertor.
func (r REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}

// Get reads one organization.
func (r REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// List returns the organizations that the caller may see.
func (r REST) List(ctx context.Context, options *metav1internal.ListOptions) (runtime.Object, error) {
	return r.store.List(ctx, visibleTo(ctx, options))
}

// Watch streams changes of the organizations that the caller may see, until the caller's credential
// expires.
func (r REST) Watch(ctx context.Context, options *metav1internal.ListOptions) (watch.Interface, error) {
	all, err := r.store.Watch(ctx, visibleTo(ctx, options))
	principal := caller.Principal(ctx)
	if err != nil || principal == nil {
		return all, err
	}
	return watch.Filter(all, func(in watch.Event) (watch.Event, bool) { return in, principal.Live() }), nil
}

// visibleTo limits options to the caller's own organization: an account may at least read its own
// account there. The system administrator sees all.
func visibleTo(ctx context.Context, options *metav1internal.ListOptions) *metav1internal.ListOptions {
	principal := caller.Principal(ctx)
	if principal == nil || principal.System {
		return options
	}
	restricted := &metav1internal.ListOptions{}
	if options != nil {
		restricted = options.DeepCopy()
	}
	own := fields.OneTermEqualSelector("metadata.name", principal.Organization)
	if restricted.FieldSelector != nil {
		own = fields.AndSelectors(own, restricted.FieldSelector)
	}
	restricted.FieldSelector = own
	return restricted
}

// Create creates an empty organization.
func (r REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	return r.store.Create(ctx, obj, validate, options)
}

// Delete deletes an empty organization. An object that is written at the same time recreates it.
func (r REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	if err := r.checkEmpty(ctx, name); err != nil {
		return nil, false, err
	}
	out, deleted, err := r.store.Delete(ctx, name, validate, options)
	if err != nil || len(options.DryRun) > 0 {
		return out, deleted, err
	}
	if err := r.checkEmpty(ctx, name); err != nil {
		if _, again := r.Ensure(ctx, name); again != nil {
			return nil, false, again
		}
		return nil, false, err
	}
	return out, deleted, nil
}

func (r REST) checkEmpty(ctx context.Context, name string) error {
	contents, err := r.contents.Sample(ctx, name)
	if err != nil || len(contents) == 0 {
		return err
	}
	return apierrors.NewConflict(corev1.Resource("namespaces"), name,
		fmt.Errorf("organization still contains %s; delete its objects first", strings.Join(contents, ", ")))
}
