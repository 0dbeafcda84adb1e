package access

import (
	"errors"

	"freshet/internal/identity"
)

// escalation is the reason of denials that prevent privilege escalation.
const escalation = "a principal can grant only permissions that it has"

// NotToGrant adds the reason escalation to a denial without a reason.
func NotToGrant(denial error) error {
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
func (p *Policy) MayGrant(who *identity.Principal, b Binding) error {
	g, err := b.compile()
	if err != nil {
		return err
	}
	if g.role == nil {
		role, err := p.ownRole(roleKey{b.Organization, b.Role})
		if err != nil {
			return err
		}
		g = g.with(role)
	}
	return p.mayGrant(who, b.Organization, g)
}

// MayDefine returns nil if a principal may create this role or update a role to it. The
// principal must have every permission of the role in the whole organization, because
// bindings can give the role on any resource.
func (p *Policy) MayDefine(who *identity.Principal, r CustomRole) error {
	role := r.compile()
	return p.mayGrant(who, r.Organization, &grant{role: role, set: role.set, any: true})
}

func (p *Policy) mayGrant(who *identity.Principal, organization string, wanted *grant) error {
	if who == nil {
		return ErrNoPrincipal
	}
	scope := Scope{Organization: organization}
	if decision, done := administrator(who, &scope); done {
		if decision.Allowed {
			return nil
		}
		return deny(who, "cloud.rolebindings.create", &scope, outside(who, &scope))
	}
	have := p.grants(subjectOf(who))
	for i, perm := range permissions {
		if wanted.set.has(i) && !covered(have, i, wanted) {
			return deny(who, perm, &scope, escalation+" (role "+wanted.role.Name+")")
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
	for _, alternative := range alternatives {
		if !coveredByOne(have, permission, alternative) {
			return false
		}
	}
	return true
}

func coveredByOne(have []*grant, permission int, wanted []pattern) bool {
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
func (p *Policy) MayCreateAdmin(who *identity.Principal, organization string) error {
	return p.mayGrant(who, organization,
		&grant{role: roleIndex["org-admin"], set: roleIndex["org-admin"].set, any: true})
}

// MayActAs returns nil if a principal may have credentials of an account: create an API
// key for it, or read its client secret. Credentials give the principal all permissions of
// the account, so it must already have all of them: those of the account's roles and those
// that clusters grant to it. admin reports whether the account is an administrator.
func (p *Policy) MayActAs(who *identity.Principal, organization, account string, admin bool) error {
	if who == nil {
		return ErrNoPrincipal
	}
	if who.Organization == organization && who.ServiceAccount == account && who.Instance == "" {
		return nil
	}
	if admin {
		return p.MayCreateAdmin(who, organization)
	}
	for _, g := range p.grants(subjectKey{organization, SubjectServiceAccount, account}) {
		if err := p.mayGrant(who, organization, g); err != nil {
			return err
		}
	}
	scope := Scope{Organization: organization, ServiceAccount: account}
	if decision, done := administrator(who, &scope); done {
		if !decision.Allowed {
			return deny(who, "cloud.apikeys.create", &scope, outside(who, &scope))
		}
		return nil
	}
	return p.mayHoldClusterGrants(who, organization, account)
}

// MayActAsUser returns nil if a principal may control the sign-in of a user: create the
// User object, change its e-mail address, or send an invitation to set its password. With
// these the principal could sign in as the user, so it must have every permission of the
// user.
func (p *Policy) MayActAsUser(who *identity.Principal, organization, user string) error {
	if who == nil {
		return ErrNoPrincipal
	}
	scope := Scope{Organization: organization}
	if decision, done := administrator(who, &scope); done {
		if !decision.Allowed {
			return deny(who, "cloud.users.update", &scope, outside(who, &scope))
		}
		return nil
	}
	for _, g := range p.grants(subjectKey{organization, SubjectUser, user}) {
		if err := p.mayGrant(who, organization, g); err != nil {
			return err
		}
	}
	return p.mayHoldClusterGrants(who, organization, identity.UserRole(user))
}
