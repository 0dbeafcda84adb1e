package resources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/resources/registry"
)

// gate asks access about single objects.
type gate struct {
	authorizer Authorizer
	kinds      map[string]registry.Definition // by plural
}

var _ registry.Gate = gate{}

// Check implements registry.Gate. The service itself may do anything.
func (g gate) Check(ctx context.Context, resource, verb, name string, scope access.Scope) error {
	caller := PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	permission, _ := access.ForVerb(resource, "", verb)
	decision, err := g.authorizer.Authorize(ctx, caller, permission, scope)
	footprintOf(ctx).met(name, permission, scope, decision)
	if err != nil {
		return forbidden(ctx, resource, verb, name, err)
	}
	return nil
}

// CheckOwner implements registry.Gate. Whoever may change the owner may hold it
// up. What is not of this API cannot be held up here.
func (g gate) CheckOwner(ctx context.Context, namespace string, owner metav1.OwnerReference) error {
	caller := PrincipalFrom(ctx)
	plural := strings.ToLower(owner.Kind) + "s"
	kind, known := g.kinds[plural]
	if caller == nil || !known {
		return nil
	}
	permission, _ := access.ForVerb(plural, "", "update")
	scope := kind.Place(ctx, namespace, owner.Name)
	decision, err := g.authorizer.Authorize(ctx, caller, permission, scope)
	if err != nil {
		footprintOf(ctx).met(owner.Name, permission, scope, decision)
		return forbidden(ctx, plural, "create", owner.Name, fmt.Errorf("ownerReferences: blocking the deletion of an owner: %w", err))
	}
	return nil
}

// Sieve implements registry.Gate.
func (g gate) Sieve(ctx context.Context, resource, verb, namespace string) (registry.Sieve, bool) {
	caller := PrincipalFrom(ctx)
	if caller == nil {
		return nil, true
	}
	permission, _ := access.ForVerb(resource, "", verb)
	filter := g.authorizer.Filter(caller, permission, access.Scope{Organization: namespace})
	switch {
	case !caller.Live() || filter.None():
		return nil, false
	case filter.All():
		return nil, true
	}
	return filter.Allows, true
}

// forbidden words a denial as the machinery words its own. Of a stored object it
// tells no more than the caller knew: whose it is would be news already.
func forbidden(ctx context.Context, resource, verb, name string, denial error) error {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource(resource), name, access.ErrDenied)
	}
	var denied *access.Denial
	if errors.As(denial, &denied) && verb != "create" {
		known := *denied
		known.Scope = scopeOf(attributes)
		denial = &known
	}
	return responsewriters.ForbiddenStatusError(attributes, denial.Error())
}
