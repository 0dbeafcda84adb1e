package apiserver

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"freshet/internal/base/web"
	"freshet/internal/controlplane/caller"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

// meter counts the calls of an organization and rejects those that exceed its rate. Calls of system
// administrators are never rejected; the service's own calls are not counted.
func meter(codecs serializer.CodecFactory, quotas *quota.Organizations, next http.Handler) http.Handler {
	if quotas == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if response, ok := r.Context().Value(authenticatedKey{}).(*authenticator.Response); ok {
			if principal, ok := response.User.(caller.Caller); ok && !principal.System {
				organization := quotas.Organization(principal.Organization)
				web.RecordOf(r.Context()).Meter = organization
				if err := organization.Admit(); err != nil {
					writeStatus(codecs, w, r, throttledError(err))
					return
				}
				organization.Charge(r.ContentLength)
			}
		}
		next.ServeHTTP(w, r)
	})
}

func throttledError(err error) error {
	var throttled *quota.Throttled
	if errors.As(err, &throttled) {
		return apierrors.NewTooManyRequests(throttled.Error(), pipeline.RetrySeconds(throttled.After))
	}
	return err
}
