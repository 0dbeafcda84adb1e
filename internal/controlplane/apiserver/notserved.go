package apiserver

import (
	"context"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/identity/access"
)

// notFound serves paths without a handler.
func notFound(codecs serializer.CodecFactory) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeStatus(codecs, w, r, apierrors.NewGenericServerResponse(
			http.StatusNotFound, "", schema.GroupResource{}, "", r.URL.Path+" is not served", 0, true))
	})
}

// chainPolicy is the policy of the handler chain. It allows authenticated callers to request things
// that are not served, so that they get 404 or 405: a denial would suggest that the thing exists
// and that another caller may access it.
type chainPolicy struct{ policy }

func (p chainPolicy) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if _, known := a.GetUser().(caller.Caller); known && a.IsResourceRequest() && p.notServed(a) {
		return authorizer.DecisionAllow, "", nil
	}
	return p.policy.Authorize(ctx, a)
}

// notServed reports whether the method or the API group is not served. The verbs that the API
// machinery creates itself, such as those of impersonation, are left to the policy.
func (p chainPolicy) notServed(a authorizer.Attributes) bool {
	if a.GetVerb() == "" {
		return true
	}
	if isNamespace(a) {
		return !slices.Contains(namespaceVerbs, a.GetVerb())
	}
	if isEvent(a) {
		return !slices.Contains(eventVerbs, a.GetVerb())
	}
	if isQuota(a) {
		return !slices.Contains(quotaVerbs, a.GetVerb())
	}
	_, known := access.ForVerb(a.GetResource(), a.GetSubresource(), a.GetVerb())
	return known && a.GetAPIGroup() != v1alpha1.GroupName && !slices.Contains(p.reviews, a.GetAPIGroup())
}
