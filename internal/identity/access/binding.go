package access

import (
	"fmt"
	"slices"
	"strings"

	"freshet/internal/base/errs"
)

// ErrInvalidBinding matches every FieldError.
var ErrInvalidBinding = errs.New(errs.Invalid, "role binding is not valid")

// FieldError reports an invalid field of a binding.
type FieldError struct {
	Field  string // a path such as spec.roleRef.name
	Detail string
}

// Error returns the field and the detail.
func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

// Unwrap makes the error an ErrInvalidBinding, of kind Invalid.
func (e *FieldError) Unwrap() error { return ErrInvalidBinding }

// Kinds of subjects.
const (
	SubjectUser           = "User"
	SubjectServiceAccount = "ServiceAccount"
	SubjectIdentityPool   = "IdentityPool"
)

// Bounds on one binding.
const (
	maxSubjects      = 1000
	maxResourceNames = 1000
)

// Subject is a user, service account or identity pool that gets a role.
type Subject struct {
	Kind         string
	Name         string
	Organization string // "" for the binding's own
}

// Binding gives a role to subjects of its organization. At most one of Restriction, CEL
// and ResourceNames limits it to some resources; without them it is for all.
type Binding struct {
	Organization  string
	Name          string
	RoleKind      string
	Role          string
	Subjects      []Subject
	Restriction   *Restriction
	CEL           string
	ResourceNames []Restriction // any of them; deprecated
	Revision      int64         // of the resource; an older one does not replace a newer one; 0 is not compared
}

// grant is a compiled binding. All subjects of the binding share it.
type grant struct {
	binding   string
	role      *Role
	any       bool          // no restriction
	restrict  [][]pattern   // alternatives, one of which must match
	condition *expression   // the CEL condition, or nil
	source    *Binding      // for Rules
	set       permissionSet // copy of role.set, to save an indirection
}

// same reports whether two bindings with the same name are equal except for the revision.
func (b *Binding) same(o *Binding) bool {
	return b.RoleKind == o.RoleKind && b.Role == o.Role && b.CEL == o.CEL && slices.Equal(b.Subjects, o.Subjects) &&
		(b.Restriction == nil) == (o.Restriction == nil) &&
		(b.Restriction == nil || *b.Restriction == *o.Restriction) &&
		slices.Equal(b.ResourceNames, o.ResourceNames)
}

// Validate returns a FieldError if the binding is not valid. It does not check whether a
// role of an organization exists; Policy.CheckRole does.
func (b *Binding) Validate() error {
	_, err := b.compile()
	return err
}

// compile returns the grant of the binding. Its role is nil if the binding refers to a
// role of the organization; such a grant allows nothing yet.
func (b *Binding) compile() (*grant, error) {
	role, err := b.predefined()
	if err != nil {
		return nil, err
	}
	if err := b.checkSubjects(); err != nil {
		return nil, err
	}
	g := (&grant{binding: b.Name, source: b}).with(role)
	forms := 0
	for _, given := range []bool{b.Restriction != nil, b.CEL != "", len(b.ResourceNames) > 0} {
		if given {
			forms++
		}
	}
	switch {
	case forms > 1:
		return nil, &FieldError{"spec", "at most one of resourceNameRestriction, resourceNames and cel may be set"}
	case b.CEL != "":
		if g.condition, err = compileExpression(b.CEL); err != nil {
			return nil, &FieldError{"spec.cel", err.Error()}
		}
		return g, nil
	case b.Restriction != nil:
		return g, g.narrow("spec.resourceNameRestriction", *b.Restriction)
	case len(b.ResourceNames) > maxResourceNames:
		return nil, &FieldError{
			"spec.resourceNames",
			fmt.Sprintf("must have at most %d entries", maxResourceNames),
		}
	case len(b.ResourceNames) > 0:
		return g, g.narrow("spec.resourceNames", b.ResourceNames...)
	}
	g.any = true
	return g, nil
}

// with returns the grant with another role, for the same subjects and resources.
func (g *grant) with(role *Role) *grant {
	next := *g
	next.role, next.set = role, permissionSet{}
	if role != nil {
		next.set = role.set
	}
	return &next
}

// predefined returns the predefined role of the binding, or nil if the binding refers to a
// role of the organization.
func (b *Binding) predefined() (*Role, error) {
	if b.RoleKind != "ClusterRole" && b.RoleKind != kindRole {
		return nil, &FieldError{"spec.roleRef.kind", "must be ClusterRole or Role"}
	}
	role, ok := FindRole(b.RoleKind, b.Role)
	if !ok && b.RoleKind == kindRole && !Reserved(b.Role) {
		return nil, nil //nolint:nilnil // see above
	}
	if !ok {
		return nil, &FieldError{
			"spec.roleRef.name",
			fmt.Sprintf("%s %q does not exist; predefined roles are %s", b.RoleKind, b.Role, roleNames()),
		}
	}
	return role, nil
}

func roleNames() string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.Name
	}
	return strings.Join(names, ", ")
}

// checkSubjects checks the subjects. They must belong to the organization of the binding.
func (b *Binding) checkSubjects() error {
	if len(b.Subjects) > maxSubjects {
		return &FieldError{"spec.subjects", fmt.Sprintf("must have at most %d entries", maxSubjects)}
	}
	for i, s := range b.Subjects {
		field := fmt.Sprintf("spec.subjects[%d].", i)
		switch {
		case s.Kind != SubjectUser && s.Kind != SubjectServiceAccount && s.Kind != SubjectIdentityPool:
			return &FieldError{field + "kind", "must be ServiceAccount, User or IdentityPool"}
		case s.Name == "":
			return &FieldError{field + "name", "must not be empty"}
		case s.Organization != "" && s.Organization != b.Organization:
			return &FieldError{
				field + "namespace",
				"must be the namespace of the binding, because a role cannot be given to other organizations",
			}
		}
	}
	return nil
}

func (g *grant) narrow(field string, restrictions ...Restriction) error {
	for i := range restrictions {
		patterns, err := compileRestriction(&restrictions[i])
		if err != nil {
			return &FieldError{field, err.Error()}
		}
		if len(patterns) == 0 {
			g.any = true // an empty restriction matches everything, because unset fields mean any
		}
		g.restrict = append(g.restrict, patterns)
	}
	return nil
}

// allows reports whether the grant applies to a scope. The caller has checked the
// permission. Without a budget no condition matches.
func (g *grant) allows(scope *Scope, spending *budget) bool {
	if g.any {
		return true
	}
	for _, patterns := range g.restrict {
		if matchAll(patterns, scope) {
			return true
		}
	}
	return g.condition != nil && spending != nil && g.condition.matches(scope, spending)
}

// mayAllowWithin reports whether the grant could apply to something within scope.
func (g *grant) mayAllowWithin(scope *Scope) bool {
	if g.any || g.condition != nil {
		return true // a condition is evaluated for each resource
	}
	return slices.ContainsFunc(g.restrict, func(patterns []pattern) bool { return mayMatchWithin(patterns, scope) })
}
