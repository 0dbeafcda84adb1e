package access

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// ErrNoPrincipal is the error for a call without a principal.
var ErrNoPrincipal = errs.New(errs.Unauthenticated, "call is not authenticated")

// Authorize decides whether a principal has a permission on a scope. The error of a denial
// is a *Denial, which matches ErrDenied.
func (p *Policy) Authorize(ctx context.Context, who *identity.Principal, perm Permission,
	scope Scope,
) (Decision, error) {
	if who == nil {
		return Decision{}, ErrNoPrincipal
	}
	if decision, done := administrator(who, &scope); done {
		if !decision.Allowed {
			return decision, deny(who, perm, &scope, outside(who, &scope))
		}
		return decision, nil
	}
	if ownAccount(who, perm, &scope) {
		return Decision{Allowed: true, By: BySelf}, nil
	}
	grants := p.grants(subjectOf(who))
	i, known := permissionIndex[perm]
	if known {
		if g, reason := firstAllowing(ctx, grants, i, &scope); g != nil {
			return g.decision(), nil
		} else if reason != "" {
			return Decision{}, deny(who, perm, &scope, reason)
		}
	}
	reason := ""
	if len(grants) == 0 {
		reason = noBinding
	}
	return Decision{}, deny(who, perm, &scope, reason)
}

// Reasons why not all conditions were evaluated.
const (
	reasonCost  = "the conditions of its role bindings cost too much to evaluate; use fewer or simpler conditions"
	reasonEnded = "the request ended before the conditions of its role bindings were evaluated"
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
			return nil, reasonEnded
		case !spending.open():
			return nil, reasonCost
		case g.allows(scope, spending):
			return g, ""
		}
	}
	return nil, ""
}

// noBinding is the reason for a principal without any role binding. It mentions
// ServiceAccountBinding, because users mistake it for a role binding.
const noBinding = "no RoleBinding gives it any permission; an administrator of the organization has to create one " +
	"(a ServiceAccountBinding sets where an account may run and grants no permissions)"

// administrator decides the cases that do not depend on role bindings: administrators,
// other organizations, and credentials that are limited to an instance. done is false if
// role bindings decide.
func administrator(who *identity.Principal, scope *Scope) (decision Decision, done bool) {
	switch {
	case who.Instance != "" && who.Instance != scope.Instance:
		return Decision{}, true
	case who.System:
		return Decision{Allowed: true, By: BySystem}, true
	case scope.Organization == "" || who.Organization != scope.Organization:
		return Decision{}, true
	case who.Admin:
		return Decision{Allowed: true, By: ByAdmin}, true
	}
	return Decision{}, false
}

// outside returns the reason of a denial by administrator, which no role can change.
func outside(who *identity.Principal, scope *Scope) string {
	switch {
	case who.Instance != "" && who.Instance != scope.Instance:
		return "the credential is limited to instance " + who.Instance
	case scope.Organization == "":
		return "only a system administrator may act on all organizations"
	}
	return "the principal belongs to organization " + who.Organization
}

// ownAccount reports whether the call reads the principal's own service account or an API
// key of it.
func ownAccount(who *identity.Principal, perm Permission, scope *Scope) bool {
	if who.ServiceAccount == "" {
		return false
	}
	switch perm {
	case "cloud.serviceaccounts.describe":
		return scope.ServiceAccount == who.ServiceAccount && scope.APIKey == ""
	case "cloud.apikeys.describe":
		return scope.APIKey != "" && (scope.APIKey == who.KeyName || scope.ServiceAccount == who.ServiceAccount)
	}
	return false
}

func subjectOf(who *identity.Principal) subjectKey {
	if who.ServiceAccount != "" {
		return subjectKey{who.Organization, SubjectServiceAccount, who.ServiceAccount}
	}
	return subjectKey{who.Organization, SubjectUser, who.User}
}

func (g *grant) decision() Decision {
	return Decision{Allowed: true, By: ByBinding, Role: g.role.Name, Binding: g.binding}
}

// Filter checks one permission for many resources within a scope, for lists. A list hides
// resources that the caller may not see, and those whose conditions exceed the budget. A
// Filter is a snapshot for one call.
type Filter struct {
	who    *identity.Principal
	all    Decision // allowed if the principal may see everything within the scope
	grants []*grant // grants that may allow resources within the scope

	spending *budget // for the conditions of all checks
}

// Filter returns a filter for one permission within scope.
func (p *Policy) Filter(who *identity.Principal, perm Permission, scope Scope) Filter {
	f := Filter{who: who, spending: &budget{units: listCost}}
	if who == nil {
		return f
	}
	if decision, done := administrator(who, &scope); done {
		f.all = decision
		return f
	}
	i, known := permissionIndex[perm]
	if !known {
		return f
	}
	for _, g := range p.grants(subjectOf(who)) {
		switch {
		case !g.set.has(i):
		case g.allows(&scope, f.spending):
			f.all = g.decision()
			return f
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
	if len(f.grants) == 0 || scope.Organization != f.who.Organization {
		return false
	}
	for _, g := range f.grants {
		if g.allows(&scope, f.spending) {
			return true
		}
	}
	return false
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
