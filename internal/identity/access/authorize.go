package access

import (
	"context"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// ErrNoPrincipal is the error for a call without a principal.
var ErrNoPrincipal = errs.New(errs.Unauthenticated, "call is not authenticated")

// Authorize decides whether a principal has a permission on a scope. The error of a denial
// is a *Denial, which matches ErrDenied.
func (p *Policy) Authorize(ctx context.Context, principal *identity.Principal, perm Permission,
	scope Scope,
) (Decision, error) {
	if principal == nil {
		return Decision{}, ErrNoPrincipal
	}
	if decision, done := administrator(principal, &scope); done {
		if !decision.Allowed {
			return decision, newDenial(principal, perm, &scope, outsideReason(principal, &scope))
		}
		return decision, nil
	}
	if ownAccount(principal, perm, &scope) {
		return Decision{Allowed: true, By: BySelf}, nil
	}
	grants := p.grants(subjectOf(principal))
	i, known := permissionIndex[perm]
	if known {
		if g, reason := firstAllowing(ctx, grants, i, &scope); g != nil {
			return g.decision(), nil
		} else if reason != "" {
			return Decision{}, newDenial(principal, perm, &scope, reason)
		}
	}
	reason := ""
	if len(grants) == 0 {
		reason = reasonNoBinding
	}
	return Decision{}, newDenial(principal, perm, &scope, reason)
}

// Reasons why not all conditions were evaluated.
const (
	reasonCost     = "the conditions of its role bindings cost too much to evaluate; use fewer or simpler conditions"
	reasonCanceled = "the request ended before the conditions of its role bindings were evaluated"
)

// firstAllowing returns a grant that allows the scope. It checks grants without conditions
// first, because they cost nothing. The reason says why it did not check all grants.
func firstAllowing(ctx context.Context, grants []*grant, permission int,
	scope *Scope,
) (allowing *grant, reason string) {
	conditions := false
	for _, g := range grants {
		switch {
		case !g.set.has(permission):
		case g.condition != nil:
			conditions = true
		case g.allows(scope, nil):
			return g, ""
		}
	}
	if !conditions {
		return nil, ""
	}
	spending := budgetOf(ctx)
	for _, g := range grants {
		switch {
		case g.condition == nil || !g.set.has(permission):
		case ctx.Err() != nil:
			return nil, reasonCanceled
		case !spending.available():
			return nil, reasonCost
		case g.allows(scope, spending):
			return g, ""
		}
	}
	return nil, ""
}

// reasonNoBinding is the reason for a principal without any role binding. It mentions
// ServiceAccountBinding, because users mistake it for a role binding.
const reasonNoBinding = "no RoleBinding gives it any permission; an administrator of the organization has to create " +
	"one (a ServiceAccountBinding sets where an account may run and grants no permissions)"

// administrator decides the cases that do not depend on role bindings: administrators,
// other organizations, and credentials that are limited to an instance. done is false if
// role bindings decide.
func administrator(principal *identity.Principal, scope *Scope) (decision Decision, done bool) {
	switch {
	case principal.Instance != "" && principal.Instance != scope.Instance:
		return Decision{}, true
	case principal.System:
		return Decision{Allowed: true, By: BySystem}, true
	case scope.Organization == "" || principal.Organization != scope.Organization:
		return Decision{}, true
	case principal.Admin:
		return Decision{Allowed: true, By: ByAdmin}, true
	}
	return Decision{}, false
}

// outsideReason returns the reason of a denial by administrator, which no role can change.
func outsideReason(principal *identity.Principal, scope *Scope) string {
	switch {
	case principal.Instance != "" && principal.Instance != scope.Instance:
		return "the credential is limited to instance " + principal.Instance
	case scope.Organization == "":
		return "only a system administrator may act on all organizations"
	}
	return "the principal belongs to organization " + principal.Organization
}

// ownAccount reports whether the call reads the principal's own service account or an API
// key of it.
func ownAccount(principal *identity.Principal, perm Permission, scope *Scope) bool {
	if principal.ServiceAccount == "" {
		return false
	}
	switch perm {
	case "cloud.serviceaccounts.describe":
		return scope.ServiceAccount == principal.ServiceAccount && scope.APIKey == ""
	case "cloud.apikeys.describe":
		return scope.APIKey != "" &&
			(scope.APIKey == principal.KeyName || scope.ServiceAccount == principal.ServiceAccount)
	}
	return false
}

func subjectOf(principal *identity.Principal) subjectKey {
	if principal.ServiceAccount != "" {
		return subjectKey{principal.Organization, SubjectServiceAccount, principal.ServiceAccount}
	}
	return subjectKey{principal.Organization, SubjectUser, principal.User}
}

func (g *grant) decision() Decision {
	return Decision{Allowed: true, By: ByBinding, Role: g.role.Name, Binding: g.binding}
}

// Filter checks one permission for many resources within a scope, for lists. A list hides
// resources that the caller may not see, and those whose conditions exceed the budget. A
// Filter is a snapshot for one call.
type Filter struct {
	principal *identity.Principal
	all       Decision // allowed if the principal may see everything within the scope
	grants    []*grant // grants that may allow resources within the scope

	budget *budget // for the conditions of all checks
}

// Filter returns a filter for one permission within scope.
func (p *Policy) Filter(principal *identity.Principal, perm Permission, scope Scope) Filter {
	f := Filter{principal: principal, budget: &budget{units: listCost}}
	if principal == nil {
		return f
	}
	if decision, done := administrator(principal, &scope); done {
		f.all = decision
		return f
	}
	i, known := permissionIndex[perm]
	if !known {
		return f
	}
	for _, g := range p.grants(subjectOf(principal)) {
		switch {
		case !g.set.has(i):
		case g.allows(&scope, f.budget):
			f.all = g.decision()
			return f
		case g.condition != nil && !g.condition.mayMatchWithin(&scope, f.budget):
		case g.mayAllowWithin(&scope):
			f.grants = append(f.grants, g)
		}
	}
	return f
}

// All reports whether everything within the scope is allowed, so that the caller does not
// need to call Allows.
func (f *Filter) All() bool { return f.all.Allowed }

// None reports whether nothing within the scope can be allowed.
func (f *Filter) None() bool { return !f.all.Allowed && len(f.grants) == 0 }

// Allows reports whether one resource within the filter's scope is allowed. scope must
// also contain the fields of the filter's scope.
func (f *Filter) Allows(scope Scope) bool {
	if f.all.Allowed {
		return true
	}
	if len(f.grants) == 0 || scope.Organization != f.principal.Organization {
		return false
	}
	return slices.ContainsFunc(f.grants, func(g *grant) bool { return g.allows(&scope, f.budget) })
}

// Decision returns the decision for the audit record of a list.
func (f *Filter) Decision() Decision {
	switch {
	case f.all.Allowed:
		return f.all
	case len(f.grants) > 0:
		return f.grants[0].decision()
	}
	return Decision{}
}
