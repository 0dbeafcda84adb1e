package access

import (
	"freshet/internal/identity"
)

// Rule is one entry of a review: permissions, and the resources to which they apply.
type Rule struct {
	By           By
	Role         string
	Binding      string
	Permissions  []Permission
	Restrictions []Restriction // alternatives; empty means the whole organization
	CEL          string
}

// Rules returns the permissions of a principal within a scope, so that a console can
// disable the other actions. It skips rules that cannot apply within the scope.
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

// bound returns the restriction of a credential that is limited to an instance.
func bound(who *identity.Principal) []Restriction {
	if who.Instance == "" {
		return nil
	}
	return []Restriction{{Instance: who.Instance}}
}

// SubjectRule is a rule with its subject.
type SubjectRule struct {
	Subject Subject
	Rule
}

// RulesBeneath returns the rules that role bindings grant within a scope, with their
// subjects, up to a limit. complete is false if there are more. Only callers that may read
// role bindings may see the result.
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
