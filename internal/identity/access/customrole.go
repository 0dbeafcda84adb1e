package access

import (
	"fmt"

	"freshet/internal/base/revision"
)

// kindRole is the kind of an organization's own roles in a binding's roleRef, and
// of the older names of predefined ones.
const kindRole = "Role"

// CustomRole is a role that an organization made itself.
type CustomRole struct {
	Organization string
	Name         string
	Description  string
	Permissions  []Permission
	Revision     int64 // of the resource; older ones do not replace newer ones; 0 is not compared
}

// compile leaves out permissions that there are no more.
func (r *CustomRole) compile() *Role {
	role := &Role{Name: r.Name, Description: r.Description}
	for _, permission := range r.Permissions {
		if i, ok := permissionIndex[permission]; ok {
			role.set.add(i)
		}
	}
	return role
}

// Reserved reports whether a name is that of a predefined role, today's or an
// older one: no organization can give it to a role of its own.
func Reserved(name string) bool {
	_, predefined := roleIndex[name]
	_, older := legacyRoles[name]
	return predefined || older || name == "basic"
}

type roleKey struct{ organization, name string }

// ownRoles are the roles of organizations, and the bindings that give them,
// whether or not the role is there. Policy.mu guards them.
type ownRoles struct {
	roles  *revision.Map[roleKey, *Role]
	counts map[string]int // roles per organization
	given  map[roleKey]map[bindingKey]struct{}
}

func newOwnRoles() ownRoles {
	return ownRoles{
		roles:  revision.NewMap[roleKey, *Role](tombstonesKept),
		counts: make(map[string]int),
		given:  make(map[roleKey]map[bindingKey]struct{}),
	}
}

// moved notes that a binding gives another role, or came (old is nil) or went (next
// is nil).
func (o *ownRoles) moved(binding bindingKey, old, next *compiled) {
	if old != nil && old.form != nil {
		delete(o.given[old.ref], binding)
		if len(o.given[old.ref]) == 0 {
			delete(o.given, old.ref)
		}
	}
	if next != nil && next.form != nil {
		if o.given[next.ref] == nil {
			o.given[next.ref] = make(map[bindingKey]struct{})
		}
		o.given[next.ref][binding] = struct{}{}
	}
}

// SetRole adds or replaces a role of an organization. Every binding that gives it
// gives what it is now.
func (p *Policy) SetRole(r CustomRole) {
	role, key := r.compile(), roleKey{r.Organization, r.Name}
	p.mu.Lock()
	defer p.mu.Unlock()
	old, known := p.own.roles.Get(key)
	if !p.own.roles.Put(key, r.Revision, role) {
		return
	}
	if !known {
		p.own.counts[r.Organization]++
	}
	if !known || *old != *role {
		p.regiveLocked(key)
	}
}

// DeleteRole ends a role: its bindings grant nothing any more. The revision (0 if
// not known) keeps a late SetRole from bringing it back.
func (p *Policy) DeleteRole(organization, name string, revision int64) {
	key := roleKey{organization, name}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.own.roles.Get(key)
	if !p.own.roles.Delete(key, revision) || !known {
		return
	}
	if p.own.counts[organization]--; p.own.counts[organization] == 0 {
		delete(p.own.counts, organization)
	}
	p.regiveLocked(key)
}

// regiveLocked brings the bindings of a role to what the role is now. It is called
// with mu held.
func (p *Policy) regiveLocked(key roleKey) {
	for binding := range p.own.given[key] {
		known, ok := p.bindings.Get(binding)
		if !ok {
			continue
		}
		next := *known
		_ = p.fillLocked(&next) // without the role it grants nothing
		p.replaceLocked(known, &next)
		*known = next
	}
}

// fillLocked gives a binding the role that it names. It is called with mu held.
func (p *Policy) fillLocked(c *compiled) error {
	c.grant, c.subjects = nil, nil
	role, ok := p.own.roles.Get(c.ref)
	if !ok {
		return noRole(c.ref)
	}
	c.grant, c.subjects = c.form.with(role), c.whose
	return nil
}

func (p *Policy) ownRole(key roleKey) (*Role, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if role, ok := p.own.roles.Get(key); ok {
		return role, nil
	}
	return nil, noRole(key)
}

func noRole(key roleKey) error {
	return &FieldError{"spec.roleRef.name", fmt.Sprintf("organization %s has no Role %q; predefined roles are of "+
		"kind ClusterRole", key.organization, key.name)}
}

// CheckRole says, as a FieldError, that the role of a binding is not there; nil when
// it is.
func (p *Policy) CheckRole(b *Binding) error {
	role, err := b.predefined()
	if err != nil || role != nil {
		return err
	}
	_, err = p.ownRole(roleKey{b.Organization, b.Role})
	return err
}

// CountRoles counts the roles of an organization.
func (p *Policy) CountRoles(organization string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own.counts[organization]
}
