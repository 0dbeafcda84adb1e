package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/pipeline"
)

// realm is the realm of the challenge in a 401 response.
const realm = "resources"

type authenticatedKey struct{}

// authenticated is the authenticator of the API machinery's chain. It returns the result of
// authenticate, which has run before.
var authenticated = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok := r.Context().Value(authenticatedKey{}).(*authenticator.Response)
	return response, ok, nil
})

// failure is why a token was rejected. The API machinery's authenticators lose the error because
// they return texts.
type failure struct{ err error }

type failureKey struct{}

func recordFailure(ctx context.Context, err error) {
	if f, ok := ctx.Value(failureKey{}).(*failure); ok {
		f.err = err
	}
}

// authenticate identifies the caller before the API machinery's chain, whose own 401 contains
// neither the reason nor what to send.
func authenticate(codecs serializer.CodecFactory, from authenticator.Request, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := &failure{}
		response, ok, err := from.AuthenticateRequest(r.WithContext(context.WithValue(r.Context(), failureKey{}, why)))
		if err == nil && ok {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), authenticatedKey{}, response)))
			return
		}
		if why.err == nil {
			why.err = noToken(r)
		}
		if errs.KindOf(why.err) != errs.Unauthenticated {
			writeStatus(codecs, w, r, apierrors.NewServiceUnavailable(why.err.Error()))
			return
		}
		if r.ProtoMajor == 2 { // unauthenticated clients must not keep a connection open
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("WWW-Authenticate", pipeline.Challenge(realm, why.err))
		writeStatus(codecs, w, r, apierrors.NewUnauthorized(why.err.Error()))
	})
}

// noToken returns an error that says what to send.
func noToken(r *http.Request) error {
	if scheme, _, ok := web.Authorization(r); ok && !strings.EqualFold(scheme, "Bearer") {
		return fmt.Errorf("%w: the scheme %.20q is not accepted here; send the header Authorization: Bearer <token>",
			identity.ErrNoToken, scheme)
	}
	return fmt.Errorf("%w: send the header Authorization: Bearer <token>", identity.ErrNoToken)
}
