// Package tokens implements the subresource serviceaccounts/token, which issues access tokens for
// service accounts; kubectl create token uses it.
//
// It issues the same tokens as the token endpoint (internal/surfaces/tokenapi), to callers that may
// act as the account instead of clients that have its secret. It stores nothing.
package tokens

import (
	"context"
	"errors"
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
	"k8s.io/kube-openapi/pkg/common"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/subresource"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Limits of a request.
const (
	defaultSeconds = 3600
	minSeconds     = 600
	maxSeconds     = 1 << 32
	maxAudiences   = 8
)

// createKey is the required permission: a token is equivalent to a short-lived API key.
// subresourceName is the last part of the path.
const subresourceName = "token"

const createKey = access.Permission("cloud.apikeys.create")

// Options are the dependencies of the subresource.
type Options struct {
	Issuer     *identity.Issuer
	Directory  *identity.Directory
	Audiences  identity.Audiences
	Authorizer subresource.AccountAuthorizer
}

var kind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// New creates the subresource.
func New(opts Options) store.Subresource { return tokens{opts} }

type tokens struct{ Options }

// Info implements store.Subresource. kubectl create token supports service accounts of core/v1 only.
func (tokens) Info() store.SubresourceInfo {
	return store.SubresourceInfo{Name: subresourceName, CorePath: true}
}

// AddToScheme implements store.Subresource. The body is a type of Kubernetes, which ../../../apiserver
// registers with the reviews.
func (tokens) AddToScheme(*runtime.Scheme) error { return nil }

// Definitions implements store.Subresource. ../../../openapi describes the types of Kubernetes.
func (tokens) Definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil }

// Open implements store.Subresource.
func (t tokens) Open(resource schema.GroupResource, main rest.Getter, _ rest.Updater) rest.Storage {
	return subresource.New(kind, resource.Resource+"/"+subresourceName, &tokenIssuer{t.Options, resource, main})
}

// tokenIssuer issues tokens.
type tokenIssuer struct {
	Options
	resource schema.GroupResource // of service accounts
	accounts rest.Getter
}

// Execute implements subresource.Handler. It issues a token.
func (m *tokenIssuer) Execute(ctx context.Context,
	call subresource.Call[*authenticationv1.TokenRequest],
) (runtime.Object, error) {
	account, ok := m.ready(call.Organization, call.Name)
	if !ok {
		var err error
		if account, err = m.await(ctx, call.Organization, call.Name); err != nil {
			return nil, err
		}
	}
	// The first authorization could not check an account that the directory did not contain yet.
	if err := m.Authorize(ctx, call.Organization, call.Name, call.Body); err != nil {
		return nil, apierrors.NewForbidden(v1alpha1.Resource(m.resource.Resource+"/"+subresourceName), call.Name, err)
	}
	out := call.Body.DeepCopy()
	out.Name, out.Namespace, out.CreationTimestamp = call.Name, call.Organization, metav1.Now()
	return out, m.issue(caller.Principal(ctx), account, out, call.DryRun)
}

// A new account gets its credentials shortly after its creation.
const (
	provisioningTimeout = 5 * time.Second
	pollInterval        = 20 * time.Millisecond
)

var errNotReady = errs.New(errs.Conflict,
	"account has no credentials yet; wait until its condition Ready is True, or see there why it is not")

// ready returns an account that has credentials.
func (m *tokenIssuer) ready(organization, name string) (*identity.Account, bool) {
	account, ok := m.Directory.Account(organization, name)
	return account, ok && account.ClientID != ""
}

// await waits for the credentials of a new account, so that a caller that has just created it can
// get a token.
func (m *tokenIssuer) await(ctx context.Context, organization, name string) (*identity.Account, error) {
	if _, err := m.accounts.Get(request.WithUser(ctx, nil), name, &metav1.GetOptions{}); err != nil {
		return nil, err
	}
	for end := time.Now().Add(provisioningTimeout); time.Now().Before(end); {
		if account, ok := m.ready(organization, name); ok {
			return account, nil
		}
		if retry.Sleep(ctx, pollInterval) != nil {
			return nil, apierrors.NewTimeoutError("waiting for the credentials of the account", 1)
		}
	}
	return nil, apierrors.NewConflict(m.resource, name, errNotReady)
}

// Authorize implements subresource.Handler. It allows callers that could create an API key for the
// account, because the holder of a token can do everything that the account may do.
func (m *tokenIssuer) Authorize(ctx context.Context, organization, name string,
	_ *authenticationv1.TokenRequest,
) error {
	principal := caller.Principal(ctx)
	if principal == nil {
		return nil // the service itself
	}
	if _, err := m.Authorizer.Authorize(ctx, principal, createKey,
		access.Scope{Organization: organization, ServiceAccount: name}); err != nil {
		return err
	}
	account, exists := m.Directory.Account(organization, name)
	if exists && account.System && !principal.System {
		return access.ErrDenied
	}
	return m.Authorizer.MayActAs(principal, organization, name, exists && account.Admin)
}

// Validate implements subresource.Handler.
func (*tokenIssuer) Validate(body *authenticationv1.TokenRequest) field.ErrorList {
	spec := &body.Spec
	var problems field.ErrorList
	path := field.NewPath("spec")
	if spec.ExpirationSeconds == nil {
		spec.ExpirationSeconds = new(int64)
		*spec.ExpirationSeconds = defaultSeconds
	}
	if n := *spec.ExpirationSeconds; n < minSeconds || n > maxSeconds {
		problems = append(problems, field.Invalid(path.Child("expirationSeconds"), n, "must be at least 600 (10 "+
			"minutes) and at most 4294967296; the server's own limit may be shorter"))
	}
	if spec.BoundObjectRef != nil {
		problems = append(problems,
			field.Forbidden(path.Child("boundObjectRef"), "is not supported: tokens are bound to their account only"))
	}
	if n := len(spec.Audiences); n > maxAudiences {
		problems = append(problems, field.TooMany(path.Child("audiences"), n, maxAudiences))
	}
	return problems
}

// issue fills in the status. The lifetime of a token for several audiences is the shortest that
// they allow. The token ends with the credential of the principal at the latest.
func (m *tokenIssuer) issue(principal *identity.Principal, account *identity.Account,
	out *authenticationv1.TokenRequest, dryRun bool,
) error {
	requested := out.Spec.Audiences
	if len(requested) == 0 {
		requested = []string{""}
	}
	lifetime := time.Duration(*out.Spec.ExpirationSeconds) * time.Second
	var audiences []string
	for i, name := range requested {
		resolved, longest, ok := m.Audiences.Resolve(account, name, "")
		if !ok {
			return apierrors.NewInvalid(kind.GroupKind(), account.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "audiences").Index(i), name,
					"is neither the address of this server nor urn:vendor:messaging:<organization>:<instance> of an "+
						"instance of this organization"),
			})
		}
		if longest <= 0 {
			longest = identity.DefaultTokenLifetime
		}
		lifetime = min(lifetime, longest)
		for _, audience := range resolved {
			if !slices.Contains(audiences, audience) {
				audiences = append(audiences, audience)
			}
		}
	}
	out.Spec.Audiences = audiences
	if dryRun {
		out.Status.ExpirationTimestamp = metav1.NewTime(m.Issuer.DelegatedExpiry(principal, account, lifetime))
		return nil
	}
	token, expires, err := m.Issuer.DelegatedToken(principal, account, lifetime, audiences...)
	switch {
	case errors.Is(err, identity.ErrManySources):
		return apierrors.NewForbidden(v1alpha1.Resource(m.resource.Resource+"/"+subresourceName), account.Name, err)
	case errors.Is(err, identity.ErrSourceEnded):
		return apierrors.NewUnauthorized(err.Error())
	case err != nil:
		return err
	}
	out.Status = authenticationv1.TokenRequestStatus{
		Token:               token.Reveal(),
		ExpirationTimestamp: metav1.NewTime(expires),
	}
	return nil
}
