// Package invite lets people in over the resource API: the subresource
// users/invite makes a one-time link with which a person sets a password.
//
// It decides who may ask: whoever has the link could be the person, so it takes
// every permission that the user has. What a link is and how it is used is
// internal/signin's.
package invite

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/errs"
	"freshet/internal/identity"
	"freshet/internal/resources/caller"
)

// How long a link may be good, in seconds.
const (
	defaultLifetime = 7 * 24 * 60 * 60
	minLifetime     = 60
	maxLifetime     = 30 * 24 * 60 * 60
)

const changeUser = access.Permission("cloud.users.update")

var kind = v1alpha1.SchemeGroupVersion.WithKind("InvitationLink")

// Authorizer says who may decide who a user is; access.Policy is one.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission, scope access.Scope) (access.Decision, error)
	MayActAsUser(who *identity.Principal, organization, user string) error
}

// Inviter makes links; signin.Service is one.
type Inviter interface {
	Invite(ctx context.Context, organization, user, by string, lifetime time.Duration) (identity.Secret, time.Time, error)
}

// Options are what links are made of.
type Options struct {
	Authorizer Authorizer
	Inviter    Inviter
	// URL is where a link leads, for its token.
	URL func(token string) string
}

// REST is the subresource.
type REST struct {
	Options
	Users rest.Getter
}

var (
	_ rest.NamedCreater             = (*REST)(nil)
	_ rest.GroupVersionKindProvider = (*REST)(nil)
	_ rest.Storage                  = (*REST)(nil)
)

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &InvitationLink{} }

// Destroy implements rest.Storage; there is nothing to let go of.
func (*REST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return kind }

// Create makes the link of the named user.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*InvitationLink)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be an InvitationLink")
	}
	organization := request.NamespaceValue(ctx)
	by := "the service"
	if who := caller.Principal(ctx); who != nil {
		by = who.Name
		if err := r.authorize(ctx, who, organization, name); err != nil {
			return nil, apierrors.NewForbidden(v1alpha1.Resource("users/invite"), name, err)
		}
	}
	seconds, problems := lifetime(&asked.Spec)
	if len(problems) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), name, problems)
	}
	if validate != nil {
		if err := validate(ctx, obj); err != nil {
			return nil, err
		}
	}
	if err := r.exists(ctx, name); err != nil {
		return nil, err
	}
	asked.Name, asked.Namespace, asked.CreationTimestamp = name, organization, metav1.Now()
	asked.Status = InvitationLinkStatus{}
	if len(options.DryRun) > 0 {
		return asked, nil
	}
	token, ends, err := r.Inviter.Invite(ctx, organization, name, by, time.Duration(seconds)*time.Second)
	switch errs.KindOf(err) {
	case errs.NotFound:
		return nil, apierrors.NewNotFound(v1alpha1.Resource("users"), name)
	case errs.Unavailable:
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if err != nil {
		return nil, err
	}
	end := metav1.NewTime(ends)
	asked.Status = InvitationLinkStatus{URL: r.URL(token.Reveal()), ExpirationTime: &end}
	return asked, nil
}

func (r *REST) authorize(ctx context.Context, who *identity.Principal, organization, name string) error {
	if _, err := r.Authorizer.Authorize(ctx, who, changeUser, access.Scope{Organization: organization}); err != nil {
		return err
	}
	return r.Authorizer.MayActAsUser(who, organization, name)
}

// exists refuses to invite somebody who is not there, or on the way out.
func (r *REST) exists(ctx context.Context, name string) error {
	got, err := r.Users.Get(request.WithUser(ctx, nil), name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	if user, ok := got.(*v1alpha1.User); !ok || user.DeletionTimestamp != nil {
		return apierrors.NewConflict(v1alpha1.Resource("users"), name, errDeleting)
	}
	return nil
}

var errDeleting = errs.New(errs.Conflict, "the user is being deleted")

func lifetime(asked *InvitationLinkSpec) (int64, field.ErrorList) {
	path := field.NewPath("spec", "lifetimeSeconds")
	switch {
	case asked.LifetimeSeconds == nil:
		return defaultLifetime, nil
	case *asked.LifetimeSeconds < minLifetime || *asked.LifetimeSeconds > maxLifetime:
		return 0, field.ErrorList{field.Invalid(path, *asked.LifetimeSeconds, "must be 60 to 2592000 (30 days)")}
	}
	return *asked.LifetimeSeconds, nil
}
