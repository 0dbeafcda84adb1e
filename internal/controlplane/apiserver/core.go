package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"freshet/internal/base/retry"
	"freshet/internal/controlplane/events"
	"freshet/internal/controlplane/organizations"
	"freshet/internal/controlplane/quotas"
	"freshet/internal/ops/quota"
)

// addCore registers the Kubernetes types that common tools expect: namespaces, which are our
// organizations, events, and quotas.
func addCore(scheme *runtime.Scheme) error {
	core := []runtime.Object{
		&corev1.Namespace{}, &corev1.NamespaceList{}, &corev1.Event{}, &corev1.EventList{},
		&corev1.ResourceQuota{}, &corev1.ResourceQuotaList{},
	}
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, core...)
	scheme.AddKnownTypes(internalVersion(corev1.GroupName), core...)
	fresh := []runtime.Object{&eventsv1.Event{}, &eventsv1.EventList{}}
	scheme.AddKnownTypes(eventsv1.SchemeGroupVersion, fresh...)
	scheme.AddKnownTypes(internalVersion(eventsv1.GroupName), fresh...)
	metav1.AddToGroupVersion(scheme, eventsv1.SchemeGroupVersion)
	for kind, convert := range map[schema.GroupVersionKind]runtime.FieldLabelConversionFunc{
		corev1.SchemeGroupVersion.WithKind("Namespace"): organizations.FieldLabel,
		corev1.SchemeGroupVersion.WithKind("Event"):     events.CoreFieldLabel,
		eventsv1.SchemeGroupVersion.WithKind("Event"):   events.EventsV1FieldLabel,
	} {
		if err := scheme.AddFieldLabelConversionFunc(kind, convert); err != nil {
			return err
		}
	}
	return errors.Join(scheme.SetVersionPriority(corev1.SchemeGroupVersion),
		scheme.SetVersionPriority(eventsv1.SchemeGroupVersion))
}

func internalVersion(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
}

// core contains the resources that are served in addition to the kinds.
type core struct {
	organizations *organizations.Organizations
	events        *events.Events
	quotas        *quota.Organizations // nil: not served
}

// openCore opens the stores, whose objects are encoded in API groups of their own.
func openCore(scheme *runtime.Scheme, codecs serializer.CodecFactory, options generic.RESTOptionsGetter) (core, error) {
	options = withCodec{options, storageCodec(scheme, codecs, corev1.SchemeGroupVersion)}
	list, err := organizations.Open(scheme, options)
	if err != nil {
		return core{}, err
	}
	eventStore, err := events.Open(scheme, options)
	return core{organizations: list, events: eventStore}, err
}

// withCodec makes a store use another codec.
type withCodec struct {
	generic.RESTOptionsGetter
	codec runtime.Codec
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s withCodec) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil {
		config := *options.StorageConfig
		config.Codec = s.codec
		options.StorageConfig = &config
	}
	return options, err
}

// install installs the resources.
func (c core) install(generic *genericapiserver.GenericAPIServer, scheme *runtime.Scheme,
	codecs serializer.CodecFactory, kinds kinds, contents contents, readable events.Readable,
) error {
	legacy := genericapiserver.NewDefaultAPIGroupInfo(corev1.GroupName, scheme, metav1.ParameterCodec, codecs)
	legacy.NegotiatedSerializer = readableStatuses{legacy.NegotiatedSerializer}
	storages := map[string]rest.Storage{
		"namespaces": c.organizations.REST(contents), "events": c.events.Core(readable),
	}
	if c.quotas != nil {
		storages["resourcequotas"] = quotas.REST{Book: c.quotas, Kinds: kinds, Readable: readable}
	}
	legacy.VersionedResourcesStorageMap["v1"] = storages
	if err := generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &legacy); err != nil {
		return fmt.Errorf("installing the namespaces: %w", err)
	}
	fresh := genericapiserver.NewDefaultAPIGroupInfo(eventsv1.GroupName, scheme, metav1.ParameterCodec, codecs)
	fresh.NegotiatedSerializer = readableStatuses{fresh.NegotiatedSerializer}
	fresh.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"events": c.events.EventsV1(readable)}
	if err := generic.InstallAPIGroup(&fresh); err != nil {
		return fmt.Errorf("installing the events: %w", err)
	}
	return nil
}

// maxContents is the number of objects that are named when an organization is not empty.
const maxContents = 3

// contents reads the objects of organizations from the stores of the kinds.
type contents struct{ storages map[string]rest.Storage }

// Sample implements organizations.Contents.
func (c contents) Sample(ctx context.Context, organization string) ([]string, error) {
	// Read as the service, which sees all objects.
	ctx = request.WithNamespace(context.WithoutCancel(ctx), organization)
	ctx = request.WithUser(ctx, nil)
	var found []string
	for _, plural := range namespaced(c.storages) {
		list, err := c.storages[plural].(rest.Lister).List(ctx, &metav1internal.ListOptions{Limit: maxContents})
		if err != nil {
			return nil, fmt.Errorf("reading the %s of organization %s: %w", plural, organization, err)
		}
		err = meta.EachListItem(list, func(obj runtime.Object) error {
			if object, err := meta.Accessor(obj); err == nil && len(found) < maxContents {
				found = append(found, plural+"/"+object.GetName())
			}
			return nil
		})
		if err != nil || len(found) == maxContents {
			return found, err
		}
	}
	return found, nil
}

// namespaced returns the resources whose objects belong to organizations.
func namespaced(storages map[string]rest.Storage) []string {
	var list []string
	for plural, storage := range storages {
		scoper, ok := storage.(rest.Scoper)
		if _, lists := storage.(rest.Lister); ok && lists && scoper.NamespaceScoped() &&
			!strings.Contains(plural, "/") {
			list = append(list, plural)
		}
	}
	slices.Sort(list)
	return list
}

const organizationsRetry = time.Second

// completeOrganizations completes the list of organizations at startup, after the caches are filled;
// the server is not ready before. It retries until it succeeds, because a failing hook ends the
// process.
func completeOrganizations(storages map[string]rest.Storage, list *organizations.Organizations, caches []cached,
	log *slog.Logger,
) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		if warm(hook, caches) != nil {
			return nil //nolint:nilerr // the server is stopping; that is not an error of the hook
		}
		for {
			err := ensureOrganizations(hook, storages, list)
			if err == nil {
				return nil
			}
			log.Warn("completing the list of organizations failed; retrying", slog.Any("error", err))
			if retry.Sleep(hook, organizationsRetry) != nil {
				return nil //nolint:nilerr // the server is stopping; that is not an error of the hook
			}
		}
	}
}

// ensureOrganizations adds every organization with objects to the list. Earlier versions kept no
// list.
func ensureOrganizations(ctx context.Context, storages map[string]rest.Storage,
	list *organizations.Organizations,
) error {
	known := map[string]bool{}
	for _, plural := range namespaced(storages) {
		objects, err := storages[plural].(rest.Lister).List(request.WithNamespace(ctx, ""),
			&metav1internal.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("reading the %s: %w", plural, err)
		}
		err = meta.EachListItem(objects, func(obj runtime.Object) error {
			object, err := meta.Accessor(obj)
			if err != nil || known[object.GetNamespace()] {
				return err
			}
			known[object.GetNamespace()] = true
			_, err = list.Ensure(ctx, object.GetNamespace())
			return err
		})
		if err != nil {
			return fmt.Errorf("listing the organizations: %w", err)
		}
	}
	return nil
}
