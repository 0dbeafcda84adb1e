package access

import (
	"errors"
	"slices"

	"freshet/internal/identity"
)

// escalation is the reason of denials that prevent privilege escalation.
const escalation = "a principal can grant only permissions that it has"

// AsEscalation adds the reason escalation to a denial without a reason.
func AsEscalation(denial error) error {
	var denied *Denial
	if !errors.As(denial, &denied) || denied.Reason != "" {
		return denial
	}
	known := *denied
	known.Reason = escalation
	return &known
}

// MayGrant returns nil if a principal may create this binding or update a binding to it.
// To prevent privilege escalation, the principal must have every permission of the role on
// all resources of the binding. CEL conditions cannot be compared, so a binding with a
// condition counts as a binding for the whole organization.
func (p *Policy) MayGrant(principal *identity.Principal, b Binding) error {
	g, err := b.compile()
	if err != nil {
		return err
	}
	if g.role == nil {
		role, err := p.organizationRole(roleKey{b.Organization, b.Role})
		if err != nil {
			return err
		}
		g = g.with(role)
	}
	return p.mayGrant(principal, b.Organization, g)
}

// MayDefine returns nil if a principal may create this role or update a role to it. The
// principal must have every permission of the role in the whole organization, because
// bindings can give the role on any resource.
func (p *Policy) MayDefine(principal *identity.Principal, r CustomRole) error {
	role := r.compile()
	return p.mayGrant(principal, r.Organization, &grant{role: role, set: role.set, any: true})
}

func (p *Policy) mayGrant(principal *identity.Principal, organization string, wanted *grant) error {
	if principal == nil {
		return ErrNoPrincipal
	}
	scope := Scope{Organization: organization}
	if decision, done := administrator(principal, &scope); done {
		if decision.Allowed {
			return nil
		}
		return newDenial(principal, "cloud.rolebindings.create", &scope, outsideReason(principal, &scope))
	}
	have := p.grants(subjectOf(principal))
	for i, perm := range permissions {
		if wanted.set.has(i) && !covered(have, i, wanted) {
			return newDenial(principal, perm, &scope, escalation+" (role "+wanted.role.Name+")")
		}
	}
	return nil
}

// covered reports whether the grants have cover one permission of the wanted grant: each
// alternative of the wanted grant must be within one grant.
func covered(have []*grant, permission int, wanted *grant) bool {
	alternatives := wanted.restrict
	if wanted.any || wanted.condition != nil {
		alternatives = [][]pattern{nil} // the whole organization
	}
	return !slices.ContainsFunc(alternatives, func(a []pattern) bool { return !coveredByGrant(have, permission, a) })
}

func coveredByGrant(have []*grant, permission int, wanted []pattern) bool {
	for _, g := range have {
		if !g.set.has(permission) {
			continue
		}
		if g.any {
			return true
		}
		for _, own := range g.restrict {
			if coversAll(own, wanted) {
				return true
			}
		}
	}
	return false
}

// MayCreateAdmin returns nil if a principal may create an administrator of the
// organization. The principal must have all permissions in the organization.
func (p *Policy) MayCreateAdmin(principal *identity.Principal, organization string) error {
	return p.mayGrant(principal, organization,
		&grant{role: roleIndex["org-admin"], set: roleIndex["org-admin"].set, any: true})
}

// MayActAs returns nil if a principal may have credentials of an account: create an API
// key for it, or read its client secret. Credentials give the principal all permissions of
// the account, so it must already have all of them: those of the account's roles and those
// that clusters grant to it. admin reports whether the account is an administrator.
func (p *Policy) MayActAs(principal *identity.Principal, organization, account string, admin bool) error {
	if principal == nil {
		return ErrNoPrincipal
	}
	if principal.Organization == organization && principal.ServiceAccount == account && principal.Instance == "" {
		return nil
	}
	if admin {
		return p.MayCreateAdmin(principal, organization)
	}
	for _, g := range p.grants(subjectKey{organization, SubjectServiceAccount, account}) {
		if err := p.mayGrant(principal, organization, g); err != nil {
			return err
		}
	}
	scope := Scope{Organization: organization, ServiceAccount: account}
	if decision, done := administrator(principal, &scope); done {
		if !decision.Allowed {
			return newDenial(principal, "cloud.apikeys.create", &scope, outsideReason(principal, &scope))
		}
		return nil
	}
	return p.mayHoldClusterGrants(principal, organization, account)
}

// MayActAsUser returns nil if a principal may control the sign-in of a user: create the
// User object, change its e-mail address, or send an invitation to set its password. With
// these the principal could sign in as the user, so it must have every permission of the
// user.
func (p *Policy) MayActAsUser(principal *identity.Principal, organization, user string) error {
	if principal == nil {
		return ErrNoPrincipal
	}
	scope := Scope{Organization: organization}
	if decision, done := administrator(principal, &scope); done {
		if !decision.Allowed {
			return newDenial(principal, "cloud.users.update", &scope, outsideReason(principal, &scope))
		}
		return nil
	}
	for _, g := range p.grants(subjectKey{organization, SubjectUser, user}) {
		if err := p.mayGrant(principal, organization, g); err != nil {
			return err
		}
	}
	return p.mayHoldClusterGrants(principal, organization, identity.UserRole(user))
}
