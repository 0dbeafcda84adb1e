package access

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// ErrNoPrincipal is what a call without a principal gets.
var ErrNoPrincipal = errs.New(errs.Unauthenticated, "the call is not authenticated")

// Authorize decides whether a principal may do something. A denial is a
// *Denial, which is an ErrDenied.
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

// Why conditions were not asked to the end.
const (
	reasonCost  = "the conditions of its role bindings cost too much to evaluate: use fewer or simpler ones"
	reasonEnded = "the request ended before the conditions of its role bindings were evaluated"
)

// firstAllowing finds a grant that allows, the ones without conditions first:
// they cost nothing. The reason says why not all were asked.
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

// noBinding is for those who were given nothing yet; a ServiceAccountBinding is
// easily taken for a grant.
const noBinding = "no RoleBinding gives it any permission; an administrator of the organization has to create one " +
	"(a ServiceAccountBinding says where an account may run, and permits nothing)"

// administrator settles what bindings have no say in: administrators, other
// organizations, and credentials that are bound to an instance.
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

// outside explains a denial that no role could mend.
func outside(who *identity.Principal, scope *Scope) string {
	switch {
	case who.Instance != "" && who.Instance != scope.Instance:
		return "this credential is good for instance " + who.Instance + " only"
	case scope.Organization == "":
		return "only a system administrator may act on all organizations"
	}
	return "the principal belongs to organization " + who.Organization
}

// ownAccount lets everybody look at themselves: the own account, and keys of it.
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

// Filter answers one permission for many things beneath a scope, as listings
// need it: lists hide what the caller may not see, and what its conditions cost
// too much to decide. It is a snapshot, for one call.
type Filter struct {
	who    *identity.Principal
	all    Decision // of whoever sees everything beneath the scope
	grants []*grant // that may allow something beneath it

	spending *budget // on the conditions of all that is asked
}

// Filter prepares to ask for one permission on many things beneath scope.
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

// All reports whether everything beneath the scope is allowed, so that there is
// no need to ask item by item.
func (f *Filter) All() bool { return f.all.Allowed }

// None reports whether nothing beneath the scope can be allowed.
func (f *Filter) None() bool { return !f.all.Allowed && len(f.grants) == 0 }

// Allows answers for one thing beneath the scope, which has to carry the
// scope's own fields too.
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

// Decision is what to write into the audit record of a listing.
func (f *Filter) Decision() Decision {
	switch {
	case f.all.Allowed:
		return f.all
	case len(f.grants) > 0:
		return f.grants[0].decision()
	}
	return Decision{}
}
