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

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/caller"
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
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission,
		scope access.Scope) (access.Decision, error)
	MayActAsUser(who *identity.Principal, organization, user string) error
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

// maker creates links.
type maker struct {
	Options
	users rest.Getter
}

// New creates the subresource.
func New(opts Options, users rest.Getter) rest.Storage {
	m := &maker{opts, users}
	return &subresource.REST[*InvitationLink]{
		Kind: kind, Resource: "users/invite", Empty: func() *InvitationLink { return &InvitationLink{} },
		Authorize: m.authorize, Check: check, Do: m.invite,
	}
}

// invite creates a link for the named user.
func (m *maker) invite(ctx context.Context, call subresource.Call[*InvitationLink]) (runtime.Object, error) {
	if err := m.exists(ctx, call.Name); err != nil {
		return nil, err
	}
	asked := call.Asked
	lifetime := time.Duration(defaultLifetime) * time.Second
	if asked.Spec.LifetimeSeconds != nil {
		lifetime = time.Duration(*asked.Spec.LifetimeSeconds) * time.Second
	}
	asked.Name, asked.Namespace, asked.CreationTimestamp = call.Name, call.Organization, metav1.Now()
	asked.Status = InvitationLinkStatus{}
	if call.DryRun {
		return asked, nil
	}
	by := "the service"
	if who := caller.Principal(ctx); who != nil {
		by = who.Name
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
	end := metav1.NewTime(ends)
	asked.Status = InvitationLinkStatus{URL: m.URL(token.Reveal()), ExpirationTime: &end}
	return asked, nil
}

func (m *maker) authorize(ctx context.Context, organization, name string, _ *InvitationLink) error {
	who := caller.Principal(ctx)
	if who == nil {
		return nil // the service itself
	}
	if _, err := m.Authorizer.Authorize(ctx, who, changeUser, access.Scope{Organization: organization}); err != nil {
		return err
	}
	return m.Authorizer.MayActAsUser(who, organization, name)
}

// exists returns an error if the user does not exist or is being deleted.
func (m *maker) exists(ctx context.Context, name string) error {
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

func check(asked *InvitationLink) field.ErrorList {
	seconds := asked.Spec.LifetimeSeconds
	if seconds != nil && (*seconds < minLifetime || *seconds > maxLifetime) {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "lifetimeSeconds"), *seconds,
			"must be from 60 to 2592000 (30 days)")}
	}
	return nil
}
