package apiserver

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	reviewv1alpha1 "freshet/api/authorization/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/identity"
)

// reviewKinds are the reviews that callers create about themselves. The create response contains
// the result, and nothing is stored. Our own API group returns permissions; the two API groups of
// Kubernetes are for kubectl auth can-i and whoami.
var reviewKinds = []struct {
	version schema.GroupVersion
	plural  string
	kind    func() runtime.Object
}{
	{
		reviewv1alpha1.SchemeGroupVersion, "selfsubjectrulesreviews",
		func() runtime.Object { return &reviewv1alpha1.SelfSubjectRulesReview{} },
	},
	{
		reviewv1alpha1.SchemeGroupVersion, "selfsubjectuserreviews",
		func() runtime.Object { return &reviewv1alpha1.SelfSubjectUserReview{} },
	},
	{
		authorizationv1.SchemeGroupVersion, "selfsubjectaccessreviews",
		func() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} },
	},
	{
		authorizationv1.SchemeGroupVersion, "selfsubjectrulesreviews",
		func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} },
	},
	{
		authenticationv1.SchemeGroupVersion, "selfsubjectreviews",
		func() runtime.Object { return &authenticationv1.SelfSubjectReview{} },
	},
}

// addReviews registers the kinds, each as its own internal version too.
func addReviews(scheme *runtime.Scheme) error {
	// kubectl create token sends a TokenRequest; package tokens serves it.
	scheme.AddKnownTypes(authenticationv1.SchemeGroupVersion, &authenticationv1.TokenRequest{})
	scheme.AddKnownTypes(internalVersion(authenticationv1.GroupName), &authenticationv1.TokenRequest{})
	for _, r := range reviewKinds {
		internal := schema.GroupVersion{Group: r.version.Group, Version: runtime.APIVersionInternal}
		scheme.AddKnownTypes(r.version, r.kind())
		scheme.AddKnownTypes(internal, r.kind())
		metav1.AddToGroupVersion(scheme, r.version)
		if err := scheme.SetVersionPriority(r.version); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	return nil
}

// reviewGroups creates one API group per group of reviews.
func reviewGroups(scheme *runtime.Scheme, codecs serializer.CodecFactory,
	evaluator *reviewer,
) []*genericapiserver.APIGroupInfo {
	var groups []*genericapiserver.APIGroupInfo
	byName := map[string]*genericapiserver.APIGroupInfo{}
	for _, r := range reviewKinds {
		group, ok := byName[r.version.Group]
		if !ok {
			info := genericapiserver.NewDefaultAPIGroupInfo(r.version.Group, scheme, metav1.ParameterCodec, codecs)
			info.VersionedResourcesStorageMap[r.version.Version] = map[string]rest.Storage{}
			info.NegotiatedSerializer = readableStatuses{info.NegotiatedSerializer}
			group = &info
			byName[r.version.Group] = group
			groups = append(groups, group)
		}
		group.VersionedResourcesStorageMap[r.version.Version][r.plural] = &reviewStorage{
			kind: r.kind, plural: r.plural,
			reviewer: evaluator,
		}
	}
	return groups
}

func reviewGroupNames() []string {
	names := make([]string, 0, len(reviewKinds))
	for _, r := range reviewKinds {
		names = append(names, r.version.Group)
	}
	return names
}

// reviewStorage is the resource of a review, which can only be created.
type reviewStorage struct {
	kind     func() runtime.Object
	plural   string
	reviewer *reviewer
}

var (
	_ rest.Creater              = (*reviewStorage)(nil)
	_ rest.Scoper               = (*reviewStorage)(nil)
	_ rest.SingularNameProvider = (*reviewStorage)(nil)
)

// New implements rest.Storage.
func (q *reviewStorage) New() runtime.Object { return q.kind() }

// Destroy implements rest.Storage; it has nothing to release.
func (q *reviewStorage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (q *reviewStorage) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (q *reviewStorage) GetSingularName() string { return q.plural[:len(q.plural)-1] }

// Create returns the result of the review.
func (q *reviewStorage) Create(ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc,
	_ *metav1.CreateOptions,
) (runtime.Object, error) {
	principal := caller.Principal(ctx)
	if principal == nil {
		return nil, apierrors.NewBadRequest("reviews are not available to the service itself")
	}
	return obj, q.reviewer.review(ctx, principal, obj)
}

// review fills in the status.
func (r *reviewer) review(ctx context.Context, principal *identity.Principal, obj runtime.Object) error {
	switch review := obj.(type) {
	case *reviewv1alpha1.SelfSubjectRulesReview:
		review.Status = r.rules(principal, review.Spec)
	case *reviewv1alpha1.SelfSubjectUserReview:
		review.Status = userReviewStatus(principal)
	case *authorizationv1.SelfSubjectAccessReview:
		return r.access(ctx, principal, review)
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status = r.kubernetesRules(principal, review.Spec.Namespace)
	case *authenticationv1.SelfSubjectReview:
		review.Status.UserInfo = userInfo(principal)
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("review of type %T is not supported", obj))
	}
	return nil
}
