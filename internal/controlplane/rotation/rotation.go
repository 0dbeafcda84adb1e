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

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/caller"
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

// Authorizer decides which callers may act as an account; access.Policy implements it.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission,
		scope access.Scope) (access.Decision, error)
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
}

// Options are the dependencies of the subresource.
type Options struct {
	Issuer     *identity.Issuer
	Directory  *identity.Directory
	Sealer     *identity.Sealer
	Authorizer Authorizer
}

// rotator rotates credentials.
type rotator struct {
	Options
	accounts rest.Updater // the status of service accounts
}

// New creates the subresource; accounts writes the status of service accounts.
func New(opts Options, accounts rest.Updater) rest.Storage {
	r := &rotator{opts, accounts}
	return &subresource.REST[*CredentialsRotation]{
		Kind: kind, Resource: "serviceaccounts/rotate",
		Empty: func() *CredentialsRotation { return &CredentialsRotation{} },
		Authorize: func(ctx context.Context, organization, name string, asked *CredentialsRotation) error {
			return r.authorize(ctx, organization, name, identity.NewSecret(asked.Spec.ClientSecret))
		},
		Check: func(asked *CredentialsRotation) field.ErrorList { return check(&asked.Spec) },
		Do:    r.rotate,
	}
}

// rotate rotates the credentials of the named account.
func (r *rotator) rotate(ctx context.Context, call subresource.Call[*CredentialsRotation]) (runtime.Object, error) {
	asked := call.Asked
	asked.Spec.ClientSecret = ""
	change := &change{issuer: r.Issuer, asked: asked.Spec}
	options := &metav1.UpdateOptions{}
	if call.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	// Update runs as the service, because only the service may write credentials.
	if _, _, err := r.accounts.Update(request.WithUser(ctx, nil), call.Name, change, nil, nil, false,
		options); err != nil {
		return nil, err
	}
	asked.Name, asked.Namespace, asked.CreationTimestamp = call.Name, call.Organization, metav1.Now()
	asked.Status = change.status(call.DryRun)
	return asked, nil
}

var errSecret = errs.New(errs.Denied,
	"account does not manage accounts; to rotate its own credentials, set spec.clientSecret to its current secret")

// authorize allows callers that may change the account and read its credentials, because the
// response contains the new ones. An account may rotate its own credentials if it proves its
// current secret: a token or a key alone may be stolen and must not be sufficient to get more.
func (r *rotator) authorize(ctx context.Context, organization, name string, secret identity.Secret) error {
	who := caller.Principal(ctx)
	if who == nil {
		return nil // the service itself
	}
	err := r.mayManage(ctx, who, organization, name)
	if err == nil || who.Organization != organization || who.ServiceAccount != name || who.Instance != "" {
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

func (r *rotator) mayManage(ctx context.Context, who *identity.Principal, organization, name string) error {
	scope := access.Scope{Organization: organization, ServiceAccount: name}
	for _, permission := range []access.Permission{changeAccount, access.ReadCredentials} {
		if _, err := r.Authorizer.Authorize(ctx, who, permission, scope); err != nil {
			return err
		}
	}
	account, known := r.Directory.Account(organization, name)
	if known && account.System && !who.System {
		return access.ErrDenied
	}
	return r.Authorizer.MayActAs(who, organization, name, known && account.Admin)
}

func check(asked *CredentialsRotationSpec) field.ErrorList {
	path := field.NewPath("spec", "overlapSeconds")
	switch {
	case asked.OverlapSeconds != nil && asked.EndReplaced:
		return field.ErrorList{field.Forbidden(path,
			"must not be set with endReplaced, which ends the replaced credentials immediately")}
	case asked.OverlapSeconds == nil:
		seconds := int64(defaultOverlap)
		asked.OverlapSeconds = &seconds
	case *asked.OverlapSeconds < 0 || *asked.OverlapSeconds > maxOverlap:
		return field.ErrorList{field.Invalid(path, *asked.OverlapSeconds, "must be from 0 to 2592000 (30 days)")}
	}
	return nil
}

// change is the update of the stored account.
type change struct {
	issuer *identity.Issuer
	asked  CredentialsRotationSpec
	now    identity.Credentials // the credentials after the rotation
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
	present, err := identity.ParseCredentials(file)
	if err != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("serviceaccounts"), account.Name, errNotReady)
	}
	if c.asked.EndReplaced {
		c.now = present
		c.now.Replaced = identity.ReplacedCredentials{}
	} else {
		ends := time.Now().Add(time.Duration(*c.asked.OverlapSeconds) * time.Second)
		c.now = c.issuer.Rotate(present, account.Namespace, account.Name, ends)
	}
	account.Status.PrivateKeyType = v1alpha1.PrivateKeyTypeCredentialsFile
	account.Status.PrivateKeyData = base64.StdEncoding.EncodeToString(c.now.Stored())
	return account, nil
}

var errNotReady = errs.New(errs.Conflict,
	"account has no credentials to rotate; wait until its condition Ready is True, or see there why it is not")

func (c *change) status(dryRun bool) CredentialsRotationStatus {
	if dryRun {
		return CredentialsRotationStatus{PrivateKeyType: v1alpha1.PrivateKeyTypeCredentialsFile}
	}
	out := CredentialsRotationStatus{ClientID: c.now.ClientID, PrivateKeyType: v1alpha1.PrivateKeyTypeCredentialsFile}
	if !c.asked.EndReplaced {
		out.PrivateKeyData = base64.StdEncoding.EncodeToString(c.now.File())
	}
	if replaced := c.now.Replaced; replaced.ClientID != "" {
		out.Replaced = &ReplacedCredential{ClientID: replaced.ClientID, ExpirationTime: metav1.NewTime(replaced.Ends)}
	}
	return out
}
