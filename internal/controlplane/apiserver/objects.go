package apiserver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

// objectAuthorizer authorizes access to single objects.
type objectAuthorizer struct {
	authorizer Authorizer
	kinds      kinds
}

var _ store.Authorizer = objectAuthorizer{}

// Authorize implements store.Authorizer. The service itself may do anything.
func (o objectAuthorizer) Authorize(ctx context.Context, resource, verb, name string, scope access.Scope) error {
	principal := caller.Principal(ctx)
	if principal == nil {
		return nil
	}
	permission, _ := access.ForVerb(resource, "", verb)
	decision, err := o.authorizer.Authorize(ctx, principal, permission, scope)
	auditNotesOf(ctx).recordObject(name, permission, scope, decision)
	if err != nil {
		return o.forbidden(ctx, resource, verb, name, err)
	}
	return nil
}

// AuthorizeBlocking implements store.Authorizer. A caller that may change the owner may block its
// deletion. Owners of other APIs are not checked, because this server does not delete them.
func (o objectAuthorizer) AuthorizeBlocking(ctx context.Context, namespace string, owner metav1.OwnerReference) error {
	principal := caller.Principal(ctx)
	resource, kind, known := o.kinds.ofKind(owner.Kind)
	if principal == nil || !known {
		return nil
	}
	permission, _ := access.ForVerb(resource, "", "update")
	scope := kind.Scope(ctx, namespace, owner.Name)
	decision, err := o.authorizer.Authorize(ctx, principal, permission, scope)
	if err != nil {
		auditNotesOf(ctx).recordObject(owner.Name, permission, scope, decision)
		return o.forbidden(ctx, resource, "create", owner.Name,
			fmt.Errorf("ownerReferences: blocking the deletion of an owner: %w", err))
	}
	return nil
}

// Filter implements store.Authorizer.
func (o objectAuthorizer) Filter(ctx context.Context, resource, verb, namespace string) (store.Filter, bool) {
	principal := caller.Principal(ctx)
	if principal == nil {
		return nil, true
	}
	permission, _ := access.ForVerb(resource, "", verb)
	filter := o.authorizer.Filter(principal, permission, access.Scope{Organization: namespace})
	switch {
	case !principal.Live() || filter.None():
		return nil, false
	case filter.All():
		return nil, true
	}
	return filter.Allows, true
}

// forbidden formats a denial like the API machinery. It reveals no more about a stored object than
// the caller sent: even the scope of the object would be new information.
func (o objectAuthorizer) forbidden(ctx context.Context, resource, verb, name string, denial error) error {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource(resource), name, access.ErrDenied)
	}
	var denied *access.Denial
	if errors.As(denial, &denied) && verb != "create" {
		known := *denied
		known.Scope = o.kinds.scopeOf(attributes)
		denial = &known
	}
	return responsewriters.ForbiddenStatusError(attributes, denial.Error())
}
