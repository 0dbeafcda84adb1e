package access

import (
	"fmt"
	"slices"
	"strings"

	"freshet/internal/base/errs"
)

// ErrInvalidBinding is what every refusal of a binding is.
var ErrInvalidBinding = errs.New(errs.Invalid, "the role binding is not valid")

// FieldError says which field of a binding is wrong, and why.
type FieldError struct {
	Field  string // a path such as spec.roleRef.name
	Detail string
}

// Error names the field.
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

// Subject is who gets a role.
type Subject struct {
	Kind         string
	Name         string
	Organization string // "" for the binding's own
}

// Binding gives a role to subjects of its organization, everywhere or on what
// at most one of Restriction, CEL and ResourceNames says.
type Binding struct {
	Organization  string
	Name          string
	RoleKind      string
	Role          string
	Subjects      []Subject
	Restriction   *Restriction
	CEL           string
	ResourceNames []Restriction // any of them; deprecated
	Revision      int64         // of the resource; older ones do not replace newer ones; 0 is not compared
}

// grant is a compiled binding, shared by its subjects.
type grant struct {
	binding   string
	role      *Role
	any       bool          // no restriction at all
	restrict  [][]pattern   // one of these has to match
	condition *expression   // or this
	source    *Binding      // for reviews
	set       permissionSet // of the role, here to save a hop
}

// same reports whether two bindings of one name say the same.
func (b *Binding) same(o *Binding) bool {
	return b.RoleKind == o.RoleKind && b.Role == o.Role && b.CEL == o.CEL && slices.Equal(b.Subjects, o.Subjects) &&
		(b.Restriction == nil) == (o.Restriction == nil) &&
		(b.Restriction == nil || *b.Restriction == *o.Restriction) &&
		slices.Equal(b.ResourceNames, o.ResourceNames)
}

// Validate says what is wrong with a binding, as a FieldError. Whether an
// organization has a role of its own is for the policy to tell.
func (b *Binding) Validate() error {
	_, err := b.compile()
	return err
}

// compile makes a grant that grants nothing yet when the role is one of the
// organization's own.
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
		return nil, &FieldError{"spec", "at most one of resourceNameRestriction, resourceNames and cel may be given"}
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
			fmt.Sprintf("must not have more than %d entries", maxResourceNames),
		}
	case len(b.ResourceNames) > 0:
		return g, g.narrow("spec.resourceNames", b.ResourceNames...)
	}
	g.any = true
	return g, nil
}

// with is the grant of a role, for the same subjects on the same resources.
func (g *grant) with(role *Role) *grant {
	next := *g
	next.role, next.set = role, permissionSet{}
	if role != nil {
		next.set = role.set
	}
	return &next
}

// predefined is the role of the binding; nil when it is one of the organization's
// own.
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
			fmt.Sprintf("there is no %s %q; predefined roles are %s", b.RoleKind, b.Role, roleNames()),
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

// checkSubjects keeps bindings inside their organization: naming an account of
// another one gives it nothing.
func (b *Binding) checkSubjects() error {
	if len(b.Subjects) > maxSubjects {
		return &FieldError{"spec.subjects", fmt.Sprintf("must not have more than %d entries", maxSubjects)}
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
				"must be the binding's own namespace: roles are not given to other organizations",
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
			g.any = true // an empty restriction restricts nothing: unset means any
		}
		g.restrict = append(g.restrict, patterns)
	}
	return nil
}

// allows reports whether the grant reaches a scope; the permission has been
// looked at already. Without a budget no condition matches.
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

// mayAllowWithin reports whether the grant could reach something beneath scope.
func (g *grant) mayAllowWithin(scope *Scope) bool {
	if g.any || g.condition != nil {
		return true // a condition is asked item by item
	}
	for _, patterns := range g.restrict {
		if mayMatchWithin(patterns, scope) {
			return true
		}
	}
	return false
}
