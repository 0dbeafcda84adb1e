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

// realm is what the challenge of a 401 names.
const realm = "resources"

type authenticatedKey struct{}

// authenticated is what the library's chain asks: who was found outside of it.
var authenticated = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok := r.Context().Value(authenticatedKey{}).(*authenticator.Response)
	return response, ok, nil
})

// failure is why a token was refused. The library's authenticators lose it on
// the way: they answer with texts.
type failure struct{ err error }

type failureKey struct{}

func noteFailure(ctx context.Context, err error) {
	if f, ok := ctx.Value(failureKey{}).(*failure); ok {
		f.err = err
	}
}

// authenticate finds the caller before the library's chain does, whose own 401
// says neither why nor what to bring.
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
		if r.ProtoMajor == 2 { // strangers do not get to keep a connection open
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("WWW-Authenticate", pipeline.Challenge(realm, why.err))
		writeStatus(codecs, w, r, apierrors.NewUnauthorized(why.err.Error()))
	})
}

// noToken says what to bring.
func noToken(r *http.Request) error {
	if scheme, _, ok := web.Authorization(r); ok && !strings.EqualFold(scheme, "Bearer") {
		return fmt.Errorf("%w: the scheme %.20q is not accepted here; send the header Authorization: Bearer <token>",
			identity.ErrNoToken, scheme)
	}
	return fmt.Errorf("%w: send the header Authorization: Bearer <token>", identity.ErrNoToken)
}
