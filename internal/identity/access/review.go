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
func (p *Policy) Rules(principal *identity.Principal, scope Scope) []Rule {
	if principal == nil {
		return nil
	}
	if principal.Instance != "" && scope.Instance == "" {
		scope.Instance = principal.Instance
	}
	if decision, done := administrator(principal, &scope); done {
		if !decision.Allowed {
			return nil
		}
		return []Rule{{By: decision.By, Permissions: Permissions(), Restrictions: credentialRestriction(principal)}}
	}
	var rules []Rule
	for _, g := range p.grants(subjectOf(principal)) {
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
			rule.Restrictions = credentialRestriction(principal)
		}
		rules = append(rules, rule)
	}
	if principal.ServiceAccount != "" && principal.Instance == "" {
		rules = append(rules, Rule{
			By:           BySelf,
			Permissions:  []Permission{"cloud.serviceaccounts.describe", "cloud.apikeys.describe"},
			Restrictions: []Restriction{{ServiceAccount: principal.ServiceAccount}},
		})
	}
	return rules
}

// credentialRestriction returns the restriction of a credential that is limited to an instance.
func credentialRestriction(principal *identity.Principal) []Restriction {
	if principal.Instance == "" {
		return nil
	}
	return []Restriction{{Instance: principal.Instance}}
}

// SubjectRule is a rule with its subject.
type SubjectRule struct {
	Subject Subject
	Rule
}

// RulesWithin returns the rules that role bindings grant within a scope, with their
// subjects, up to a limit. complete is false if there are more. Only callers that may read
// role bindings may see the result.
func (p *Policy) RulesWithin(scope Scope, limit int) (rules []SubjectRule, complete bool) {
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
