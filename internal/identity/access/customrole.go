package access

import (
	"fmt"

	"freshet/internal/base/revision"
)

// kindRole is the kind in a binding's roleRef of roles of the organization, and of the
// legacy names of predefined roles.
const kindRole = "Role"

// CustomRole is a role that an organization created.
type CustomRole struct {
	Organization string
	Name         string
	Description  string
	Permissions  []Permission
	Revision     int64 // of the resource; an older one does not replace a newer one; 0 is not compared
}

// compile returns the Role. It ignores permissions that do not exist any more.
func (r *CustomRole) compile() *Role {
	role := &Role{Name: r.Name, Description: r.Description}
	for _, permission := range r.Permissions {
		if i, ok := permissionIndex[permission]; ok {
			role.set.add(i)
		}
	}
	return role
}

// Reserved reports whether a name is the current or legacy name of a predefined role. An
// organization cannot use it for its own roles.
func Reserved(name string) bool {
	_, predefined := roleIndex[name]
	_, older := legacyRoles[name]
	return predefined || older || name == "basic"
}

type roleKey struct{ organization, name string }

// ownRoles contains the roles of organizations, and the bindings that refer to such roles,
// also if the role does not exist. Policy.mu protects it.
type ownRoles struct {
	roles  *revision.Map[roleKey, *Role]
	counts map[string]int                      // roles per organization
	given  map[roleKey]map[bindingKey]struct{} // bindings by role
}

func newOwnRoles() ownRoles {
	return ownRoles{
		roles:  revision.NewMap[roleKey, *Role](tombstonesKept),
		counts: make(map[string]int),
		given:  make(map[roleKey]map[bindingKey]struct{}),
	}
}

// moved updates the bindings by role when a binding changes from old to next. old is nil
// for a new binding, next is nil for a deleted one.
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

// SetRole adds or replaces a role of an organization. The change takes effect for every
// binding that refers to the role.
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

// DeleteRole deletes a role; its bindings grant nothing any more. The revision (0 if it is
// not known) prevents that a late SetRole brings the role back.
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

// regiveLocked updates the grants of all bindings that refer to a role.
func (p *Policy) regiveLocked(key roleKey) {
	for binding := range p.own.given[key] {
		known, ok := p.bindings.Get(binding)
		if !ok {
			continue
		}
		next := *known
		_ = p.fillLocked(&next) // an error means that the role does not exist; the binding then grants nothing
		p.replaceLocked(known, &next)
		*known = next
	}
}

// fillLocked sets the grant of a binding that refers to a role of the organization. It
// returns an error if the role does not exist.
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

// CheckRole returns a FieldError if the role of a binding does not exist.
func (p *Policy) CheckRole(b *Binding) error {
	role, err := b.predefined()
	if err != nil || role != nil {
		return err
	}
	_, err = p.ownRole(roleKey{b.Organization, b.Role})
	return err
}

// CountRoles returns the number of roles of an organization.
func (p *Policy) CountRoles(organization string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own.counts[organization]
}
