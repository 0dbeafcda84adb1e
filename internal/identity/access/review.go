package access

import (
	"freshet/internal/identity"
)

// Rule is one line of a self-review: permissions, and where they hold.
type Rule struct {
	By           By
	Role         string
	Binding      string
	Permissions  []Permission
	Restrictions []Restriction // one of them; none means all of the organization
	CEL          string
}

// Rules lists what a principal may do beneath a scope, so that a console can
// grey out the rest. Rules that cannot reach the scope are left out.
func (p *Policy) Rules(who *identity.Principal, scope Scope) []Rule {
	if who == nil {
		return nil
	}
	if who.Instance != "" && scope.Instance == "" {
		scope.Instance = who.Instance
	}
	if decision, done := administrator(who, &scope); done {
		if !decision.Allowed {
			return nil
		}
		return []Rule{{By: decision.By, Permissions: Permissions(), Restrictions: bound(who)}}
	}
	var rules []Rule
	for _, g := range p.grants(subjectOf(who)) {
		if !g.mayAllowWithin(&scope) {
			continue
		}
		rule := Rule{
			By: ByBinding, Role: g.role.Name, Binding: g.binding, Permissions: g.role.Permissions(),
			CEL: g.source.CEL,
		}
		switch {
		case g.source.Restriction != nil:
			rule.Restrictions = []Restriction{*g.source.Restriction}
		case len(g.source.ResourceNames) > 0:
			rule.Restrictions = append(rule.Restrictions, g.source.ResourceNames...)
		default:
			rule.Restrictions = bound(who)
		}
		rules = append(rules, rule)
	}
	if who.ServiceAccount != "" && who.Instance == "" {
		rules = append(rules, Rule{
			By:           BySelf,
			Permissions:  []Permission{"cloud.serviceaccounts.describe", "cloud.apikeys.describe"},
			Restrictions: []Restriction{{ServiceAccount: who.ServiceAccount}},
		})
	}
	return rules
}

// bound is the restriction that a credential itself brings.
func bound(who *identity.Principal) []Restriction {
	if who.Instance == "" {
		return nil
	}
	return []Restriction{{Instance: who.Instance}}
}

// SubjectRule is what somebody may do.
type SubjectRule struct {
	Subject Subject
	Rule
}

// RulesBeneath lists what the role bindings of an organization grant beneath a scope
// of it, to whom, at most so many. It is for callers who may see role bindings.
func (p *Policy) RulesBeneath(scope Scope, limit int) (rules []SubjectRule, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, c := range p.bindings.All() {
		if key.organization != scope.Organization || c.grant == nil || !c.grant.mayAllowWithin(&scope) {
			continue
		}
		g := c.grant
		rule := Rule{
			By: ByBinding, Role: g.role.Name, Binding: g.binding, Permissions: g.role.Permissions(),
			CEL: g.source.CEL,
		}
		if g.source.Restriction != nil {
			rule.Restrictions = []Restriction{*g.source.Restriction}
		}
		rule.Restrictions = append(rule.Restrictions, g.source.ResourceNames...)
		for _, subject := range g.source.Subjects {
			if len(rules) == limit {
				return rules, false
			}
			rules = append(rules, SubjectRule{subject, rule})
		}
	}
	return rules, true
}
