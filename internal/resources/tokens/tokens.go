// Package tokens issues access tokens for service accounts over the resource
// API: the subresource serviceaccounts/token, which kubectl create token asks.
//
// It gives what the token endpoint gives (internal/tokenapi), to those who may
// act as the account instead of those who know its secret. Nothing is stored.
package tokens

import (
	"context"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/identity"
	"freshet/internal/resources/caller"
)

// Bounds of a request.
const (
	defaultSeconds = 3600
	minSeconds     = 600
	maxSeconds     = 1 << 32
	maxAudiences   = 8
)

// createKey is the permission: a token is a key with a short life.
const createKey = access.Permission("cloud.apikeys.create")

// Authorizer says who may act as an account; access.Policy is one.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission, scope access.Scope) (access.Decision, error)
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
}

// Options are what tokens are made of.
type Options struct {
	Issuer     *identity.Issuer
	Directory  *identity.Directory
	Audiences  identity.Audiences
	Authorizer Authorizer
}

// REST is the subresource.
type REST struct{ Options }

var (
	_ rest.NamedCreater             = (*REST)(nil)
	_ rest.GroupVersionKindProvider = (*REST)(nil)
	_ rest.Storage                  = (*REST)(nil)
)

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy implements rest.Storage; there is nothing to let go of.
func (*REST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
}

// Create issues a token.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a TokenRequest")
	}
	organization := request.NamespaceValue(ctx)
	if err := r.authorize(ctx, organization, name); err != nil {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("serviceaccounts/token"), name, err)
	}
	if errs := check(&asked.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, obj); err != nil {
			return nil, err
		}
	}
	account, ok := r.Directory.Account(organization, name)
	if !ok || account.ClientID == "" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("serviceaccounts"), name)
	}
	out := asked.DeepCopy()
	out.Name, out.Namespace, out.CreationTimestamp = name, organization, metav1.Now()
	return out, r.issue(account, out, len(options.DryRun) > 0)
}

// authorize lets those have a token who could make an API key for the account:
// whoever holds one does all that the account may do.
func (r *REST) authorize(ctx context.Context, organization, name string) error {
	who := caller.Principal(ctx)
	if who == nil {
		return nil // the service itself
	}
	if _, err := r.Authorizer.Authorize(ctx, who, createKey, access.Scope{Organization: organization, ServiceAccount: name}); err != nil {
		return err
	}
	account, known := r.Directory.Account(organization, name)
	if known && account.System && !who.System {
		return access.ErrDenied
	}
	return r.Authorizer.MayActAs(who, organization, name, known && account.Admin)
}

func check(spec *authenticationv1.TokenRequestSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if spec.ExpirationSeconds == nil {
		spec.ExpirationSeconds = new(int64)
		*spec.ExpirationSeconds = defaultSeconds
	}
	if n := *spec.ExpirationSeconds; n < minSeconds || n > maxSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), n, "must be at least 600 (10 minutes) and at most 4294967296; the server's own limit may be shorter"))
	}
	if spec.BoundObjectRef != nil {
		errs = append(errs, field.Forbidden(path.Child("boundObjectRef"), "tokens are bound to their account only"))
	}
	if n := len(spec.Audiences); n > maxAudiences {
		errs = append(errs, field.TooMany(path.Child("audiences"), n, maxAudiences))
	}
	return errs
}

// issue fills in the status. A token for several audiences lives as long as the
// shortest of them allows.
func (r *REST) issue(account *identity.Account, out *authenticationv1.TokenRequest, dryRun bool) error {
	wanted := out.Spec.Audiences
	if len(wanted) == 0 {
		wanted = []string{""}
	}
	lifetime := time.Duration(*out.Spec.ExpirationSeconds) * time.Second
	var audiences []string
	for i, name := range wanted {
		good, longest, ok := r.Audiences.Resolve(account, name, "")
		if !ok {
			return apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), account.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "audiences").Index(i), name,
					"is neither the address of this server nor urn:vendor:messaging:<organization>:<instance> of an instance of this organization"),
			})
		}
		if longest <= 0 {
			longest = identity.DefaultTokenLifetime
		}
		lifetime = min(lifetime, longest)
		for _, audience := range good {
			if !slices.Contains(audiences, audience) {
				audiences = append(audiences, audience)
			}
		}
	}
	out.Spec.Audiences = audiences
	if dryRun {
		out.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(lifetime))
		return nil
	}
	token, expires, err := r.Issuer.AccessToken(account, lifetime, audiences...)
	if err != nil {
		return err
	}
	out.Status = authenticationv1.TokenRequestStatus{Token: token.Reveal(), ExpirationTimestamp: metav1.NewTime(expires)}
	return nil
}
