// Package invite implements the subresource users/invite, which creates a one-time link with which
// a person sets a password.
//
// It decides which callers may create a link: the holder of a link can sign in as the user, so the
// caller needs every permission that the user has. internal/identity/signin owns the links and
// their use.
package invite

import (
	"context"
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

// Lifetime of a link, in seconds.
const (
	defaultLifetime = 7 * 24 * 60 * 60
	minLifetime     = 60
	maxLifetime     = 30 * 24 * 60 * 60
)

const changeUser = access.Permission("cloud.users.update")

var kind = v1alpha1.SchemeGroupVersion.WithKind("InvitationLink")

// Authorizer decides which callers may create links for a user; access.Policy implements it.
type Authorizer interface {
	subresource.Authorizer
	MayActAsUser(principal *identity.Principal, organization, user string) error
}

// Inviter creates links; signin.Service implements it.
type Inviter interface {
	Invite(ctx context.Context, organization, user, by string, lifetime time.Duration) (identity.Secret,
		time.Time, error)
}

// Options are the dependencies of the subresource.
type Options struct {
	Authorizer Authorizer
	Inviter    Inviter
	// URL returns the URL of a link with this token.
	URL func(token string) string
}

// New creates the subresource.
func New(opts Options) store.Subresource { return invite{opts} }

type invite struct{ Options }

// Info implements store.Subresource.
func (invite) Info() store.SubresourceInfo {
	return store.SubresourceInfo{Name: "invite", OptionalBody: true}
}

// AddToScheme implements store.Subresource.
func (invite) AddToScheme(scheme *runtime.Scheme) error {
	return subresource.AddToScheme(scheme, &InvitationLink{})
}

// Definitions implements store.Subresource.
func (invite) Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return definitions(ref)
}

// Open implements store.Subresource.
func (i invite) Open(main rest.Getter, _ rest.Updater) rest.Storage {
	return subresource.New(kind, "users/invite", &linkCreator{i.Options, main})
}

// linkCreator creates links.
type linkCreator struct {
	Options
	users rest.Getter
}

// Execute implements subresource.Handler. It creates a link for the named user.
func (m *linkCreator) Execute(ctx context.Context, call subresource.Call[*InvitationLink]) (runtime.Object, error) {
	if err := m.exists(ctx, call.Name); err != nil {
		return nil, err
	}
	link := call.Body
	lifetime := time.Duration(defaultLifetime) * time.Second
	if link.Spec.LifetimeSeconds != nil {
		lifetime = time.Duration(*link.Spec.LifetimeSeconds) * time.Second
	}
	link.Name, link.Namespace, link.CreationTimestamp = call.Name, call.Organization, metav1.Now()
	link.Status = InvitationLinkStatus{}
	if call.DryRun {
		return link, nil
	}
	by := "the service"
	if principal := caller.Principal(ctx); principal != nil {
		by = principal.Name
	}
	token, ends, err := m.Inviter.Invite(ctx, call.Organization, call.Name, by, lifetime)
	switch errs.KindOf(err) {
	case errs.NotFound:
		return nil, apierrors.NewNotFound(v1alpha1.Resource("users"), call.Name)
	case errs.Unavailable:
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if err != nil {
		return nil, err
	}
	link.Status = InvitationLinkStatus{URL: m.URL(token.Reveal()), ExpirationTime: new(metav1.NewTime(ends))}
	return link, nil
}

// Authorize implements subresource.Handler.
func (m *linkCreator) Authorize(ctx context.Context, organization, name string, _ *InvitationLink) error {
	principal := caller.Principal(ctx)
	if principal == nil {
		return nil // the service itself
	}
	if _, err := m.Authorizer.Authorize(ctx, principal, changeUser,
		access.Scope{Organization: organization}); err != nil {
		return err
	}
	return m.Authorizer.MayActAsUser(principal, organization, name)
}

// exists returns an error if the user does not exist or is being deleted.
func (m *linkCreator) exists(ctx context.Context, name string) error {
	got, err := m.users.Get(request.WithUser(ctx, nil), name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	if user, ok := got.(*v1alpha1.User); !ok || user.DeletionTimestamp != nil {
		return apierrors.NewConflict(v1alpha1.Resource("users"), name, errDeleting)
	}
	return nil
}

var errDeleting = errs.New(errs.Conflict, "user is being deleted")

// Validate implements subresource.Handler.
func (*linkCreator) Validate(link *InvitationLink) field.ErrorList {
	seconds := link.Spec.LifetimeSeconds
	if seconds != nil && (*seconds < minLifetime || *seconds > maxLifetime) {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "lifetimeSeconds"), *seconds,
			"must be from 60 to 2592000 (30 days)")}
	}
	return nil
}
