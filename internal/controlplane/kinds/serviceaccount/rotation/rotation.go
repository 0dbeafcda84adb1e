// Package rotation implements the subresource serviceaccounts/rotate, which issues new credentials
// for a service account. The replaced credentials stay valid for a while or end immediately; every
// token issued with them ends with them.
//
// It decides which callers may rotate, and writes the account's status as the service. Package
// identity owns the credentials, and internal/controlplane/kinds/serviceaccount puts them into
// force.
package rotation

import (
	"context"
	"encoding/base64"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/common"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/subresource"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Overlap: how long replaced credentials stay valid, in seconds.
const (
	defaultOverlap = 24 * 60 * 60
	maxOverlap     = 30 * 24 * 60 * 60
)

const changeAccount = access.Permission("cloud.serviceaccounts.update")

var kind = v1alpha1.SchemeGroupVersion.WithKind("CredentialsRotation")

// Options are the dependencies of the subresource.
type Options struct {
	Issuer     *identity.Issuer
	Directory  *identity.Directory
	Sealer     *identity.Sealer
	Authorizer subresource.AccountAuthorizer
}

// New creates the subresource.
func New(opts Options) store.Subresource { return rotation{opts} }

type rotation struct{ Options }

// Info implements store.Subresource.
func (rotation) Info() store.SubresourceInfo {
	return store.SubresourceInfo{Name: "rotate", OptionalBody: true, BySelf: true}
}

// AddToScheme implements store.Subresource.
func (rotation) AddToScheme(scheme *runtime.Scheme) error {
	return subresource.AddToScheme(scheme, &CredentialsRotation{})
}

// Definitions implements store.Subresource.
func (rotation) Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return definitions(ref)
}

// Open implements store.Subresource.
func (r rotation) Open(_ rest.Getter, status rest.Updater) rest.Storage {
	return subresource.New(kind, "serviceaccounts/rotate", &rotator{r.Options, status})
}

// rotator rotates credentials.
type rotator struct {
	Options
	accounts rest.Updater // the status of service accounts
}

// Validate implements subresource.Handler.
func (*rotator) Validate(body *CredentialsRotation) field.ErrorList { return validate(&body.Spec) }

// Execute implements subresource.Handler. It rotates the credentials of the named account.
func (r *rotator) Execute(ctx context.Context, call subresource.Call[*CredentialsRotation]) (runtime.Object, error) {
	body := call.Body
	body.Spec.ClientSecret = ""
	change := &change{issuer: r.Issuer, spec: body.Spec}
	options := &metav1.UpdateOptions{}
	if call.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	// Update runs as the service, because only the service may write credentials.
	if _, _, err := r.accounts.Update(request.WithUser(ctx, nil), call.Name, change, nil, nil, false,
		options); err != nil {
		return nil, err
	}
	body.Name, body.Namespace, body.CreationTimestamp = call.Name, call.Organization, metav1.Now()
	body.Status = change.status(call.DryRun)
	return body, nil
}

var errSecret = errs.New(errs.Denied,
	"account does not manage accounts; to rotate its own credentials, set spec.clientSecret to its current secret")

// Authorize implements subresource.Handler. It allows callers that may change the account and read
// its credentials, because the response contains the new ones. An account may rotate its own
// credentials if it proves its current secret: a token or a key alone may be stolen and must not be
// sufficient to get more.
func (r *rotator) Authorize(ctx context.Context, organization, name string, body *CredentialsRotation) error {
	secret := identity.NewSecret(body.Spec.ClientSecret)
	principal := caller.Principal(ctx)
	if principal == nil {
		return nil // the service itself
	}
	err := r.mayManage(ctx, principal, organization, name)
	if err == nil || principal.Organization != organization || principal.ServiceAccount != name ||
		principal.Instance != "" {
		return err
	}
	if secret.IsZero() {
		return errSecret
	}
	account, ok := r.Directory.Account(organization, name)
	if !ok || !r.Sealer.CheckSecret(account.SecretHash, secret) {
		return errSecret
	}
	return nil
}

func (r *rotator) mayManage(ctx context.Context, principal *identity.Principal, organization, name string) error {
	scope := access.Scope{Organization: organization, ServiceAccount: name}
	for _, permission := range []access.Permission{changeAccount, access.ReadCredentials} {
		if _, err := r.Authorizer.Authorize(ctx, principal, permission, scope); err != nil {
			return err
		}
	}
	account, exists := r.Directory.Account(organization, name)
	if exists && account.System && !principal.System {
		return access.ErrDenied
	}
	return r.Authorizer.MayActAs(principal, organization, name, exists && account.Admin)
}

func validate(body *CredentialsRotationSpec) field.ErrorList {
	path := field.NewPath("spec", "overlapSeconds")
	switch {
	case body.OverlapSeconds != nil && body.EndReplaced:
		return field.ErrorList{field.Forbidden(path,
			"must not be set with endReplaced, which ends the replaced credentials immediately")}
	case body.OverlapSeconds == nil:
		body.OverlapSeconds = new(int64(defaultOverlap))
	case *body.OverlapSeconds < 0 || *body.OverlapSeconds > maxOverlap:
		return field.ErrorList{field.Invalid(path, *body.OverlapSeconds, "must be from 0 to 2592000 (30 days)")}
	}
	return nil
}

// change is the update of the stored account.
type change struct {
	issuer      *identity.Issuer
	spec        CredentialsRotationSpec
	credentials identity.Credentials // the credentials after the rotation
}

// Preconditions implements rest.UpdatedObjectInfo.
func (*change) Preconditions() *metav1.Preconditions { return nil }

// UpdatedObject implements rest.UpdatedObjectInfo. It is called again if the account is written
// concurrently.
func (c *change) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	account, ok := old.(*v1alpha1.ServiceAccount)
	if !ok || account.UID == "" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("serviceaccounts"), "")
	}
	account = account.DeepCopy()
	file, err := base64.StdEncoding.DecodeString(account.Status.PrivateKeyData)
	if err != nil || len(file) == 0 || account.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("serviceaccounts"), account.Name, errNotReady)
	}
	current, err := identity.ParseCredentials(file)
	if err != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("serviceaccounts"), account.Name, errNotReady)
	}
	if c.spec.EndReplaced {
		c.credentials = current
		c.credentials.Replaced = identity.ReplacedCredentials{}
	} else {
		ends := time.Now().Add(time.Duration(*c.spec.OverlapSeconds) * time.Second)
		c.credentials = c.issuer.Rotate(current, account.Namespace, account.Name, ends)
	}
	account.Status.PrivateKeyType = v1alpha1.PrivateKeyTypeCredentialsFile
	account.Status.PrivateKeyData = base64.StdEncoding.EncodeToString(c.credentials.Stored())
	return account, nil
}

var errNotReady = errs.New(errs.Conflict,
	"account has no credentials to rotate; wait until its condition Ready is True, or see there why it is not")

func (c *change) status(dryRun bool) CredentialsRotationStatus {
	if dryRun {
		return CredentialsRotationStatus{PrivateKeyType: v1alpha1.PrivateKeyTypeCredentialsFile}
	}
	out := CredentialsRotationStatus{
		ClientID:       c.credentials.ClientID,
		PrivateKeyType: v1alpha1.PrivateKeyTypeCredentialsFile,
	}
	if !c.spec.EndReplaced {
		out.PrivateKeyData = base64.StdEncoding.EncodeToString(c.credentials.File())
	}
	if replaced := c.credentials.Replaced; replaced.ClientID != "" {
		out.Replaced = &ReplacedCredential{ClientID: replaced.ClientID, ExpirationTime: metav1.NewTime(replaced.Ends)}
	}
	return out
}
