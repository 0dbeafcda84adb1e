package access

import (
	"errors"

	"freshet/internal/identity"
)

// escalation is part of every refusal to grant.
const escalation = "nobody can grant what they do not have"

// NotToGrant words the denial of a permission that a grant would convey.
func NotToGrant(denial error) error {
	var denied *Denial
	if !errors.As(denial, &denied) || denied.Reason != "" {
		return denial
	}
	known := *denied
	known.Reason = escalation
	return &known
}

// MayGrant reports whether a principal may create or change to this binding:
// only if it has every permission of the role itself, over all that the binding
// reaches. Otherwise whoever may write bindings would have every permission. A
// condition in CEL cannot be compared, so a binding with one counts as reaching
// the whole organization.
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

// MayDefine reports whether a principal may create or change to this role: only if
// it has every permission of it in the whole organization, for a role says nothing
// about where it will be given, and may be given already.
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

// covered reports whether one permission of a grant lies within what is had:
// each alternative of the grant within one of the own.
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

// MayCreateAdmin reports whether a principal may make an administrator of the
// organization: only one who has everything in it may.
func (p *Policy) MayCreateAdmin(who *identity.Principal, organization string) error {
	return p.mayGrant(who, organization,
		&grant{role: roleIndex["org-admin"], set: roleIndex["org-admin"].set, any: true})
}

// MayActAs reports whether a principal may hold credentials of an account: make
// an API key for it, or read its client secret. Who can does what the account
// can, so this is granting by another way: all of its roles, and all that
// clusters grant to it. admin says that the account is an administrator.
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

// MayActAsUser reports whether a principal may decide who a user is: make the object
// that role bindings name, change its address, or invite somebody to set its
// password. Who can could be that somebody, so it takes every permission that the
// user has.
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
