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

// Reserved reports whether a name is the current or legacy name of a predefined role that an
// organization cannot use for its own roles.
func Reserved(name string) bool {
	_, predefined := roleIndex[name]
	_, older := legacyRoles[name]
	return predefined && !laterRoles[name] || older || name == "basic"
}

type roleKey struct{ organization, name string }

// organizationRoles contains the roles of organizations, and the bindings that refer to such roles,
// also if the role does not exist. Policy.mu protects it.
type organizationRoles struct {
	roles    *revision.Map[roleKey, *Role]
	counts   map[string]int                      // roles per organization
	bindings map[roleKey]map[bindingKey]struct{} // bindings by role
}

func newOrganizationRoles() organizationRoles {
	return organizationRoles{
		roles:    revision.NewMap[roleKey, *Role](tombstonesKept),
		counts:   make(map[string]int),
		bindings: make(map[roleKey]map[bindingKey]struct{}),
	}
}

// bindingChanged updates the bindings by role when a binding changes from old to next. old is nil
// for a new binding, next is nil for a deleted one.
func (o *organizationRoles) bindingChanged(binding bindingKey, old, next *compiledBinding) {
	if old != nil && old.withoutRole != nil {
		delete(o.bindings[old.roleRef], binding)
		if len(o.bindings[old.roleRef]) == 0 {
			delete(o.bindings, old.roleRef)
		}
	}
	if next != nil && next.withoutRole != nil {
		if o.bindings[next.roleRef] == nil {
			o.bindings[next.roleRef] = make(map[bindingKey]struct{})
		}
		o.bindings[next.roleRef][binding] = struct{}{}
	}
}

// SetRole adds or replaces a role of an organization. The change takes effect for every
// binding that refers to the role.
func (p *Policy) SetRole(r CustomRole) {
	role, key := r.compile(), roleKey{r.Organization, r.Name}
	p.mu.Lock()
	defer p.mu.Unlock()
	old, known := p.roles.roles.Get(key)
	if !p.roles.roles.Put(key, r.Revision, role) {
		return
	}
	if !known {
		p.roles.counts[r.Organization]++
	}
	if !known || *old != *role {
		p.updateBindingsLocked(key)
	}
}

// DeleteRole deletes a role; its bindings grant nothing any more. The revision (0 if it is
// not known) prevents that a late SetRole brings the role back.
func (p *Policy) DeleteRole(organization, name string, revision int64) {
	key := roleKey{organization, name}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.roles.roles.Get(key)
	if !p.roles.roles.Delete(key, revision) || !known {
		return
	}
	if p.roles.counts[organization]--; p.roles.counts[organization] == 0 {
		delete(p.roles.counts, organization)
	}
	p.updateBindingsLocked(key)
}

// updateBindingsLocked updates the grants of all bindings that refer to a role.
func (p *Policy) updateBindingsLocked(key roleKey) {
	for binding := range p.roles.bindings[key] {
		known, ok := p.bindings.Get(binding)
		if !ok {
			continue
		}
		next := *known
		_ = p.setGrantLocked(&next) // an error means that the role does not exist; the binding then grants nothing
		p.replaceLocked(known, &next)
		*known = next
	}
}

// setGrantLocked sets the grant of a binding that refers to a role of the organization. It
// returns an error if the role does not exist.
func (p *Policy) setGrantLocked(c *compiledBinding) error {
	c.grant, c.subjects = nil, nil
	role, ok := p.roles.roles.Get(c.roleRef)
	if !ok {
		return errRoleMissing(c.roleRef)
	}
	c.grant, c.subjects = c.withoutRole.with(role), c.allSubjects
	return nil
}

func (p *Policy) organizationRole(key roleKey) (*Role, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if role, ok := p.roles.roles.Get(key); ok {
		return role, nil
	}
	return nil, errRoleMissing(key)
}

func errRoleMissing(key roleKey) error {
	return &FieldError{"spec.roleRef.name", fmt.Sprintf("organization %s has no Role %q; predefined roles are of "+
		"kind ClusterRole", key.organization, key.name)}
}

// CheckRole returns a FieldError if the role of a binding does not exist.
func (p *Policy) CheckRole(b *Binding) error {
	role, err := b.predefined()
	if err != nil || role != nil {
		return err
	}
	_, err = p.organizationRole(roleKey{b.Organization, b.Role})
	return err
}

// CountRoles returns the number of roles of an organization.
func (p *Policy) CountRoles(organization string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roles.counts[organization]
}
