package rolebinding

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/validation"
	"freshet/internal/identity/access"
)

// Limits of a binding.
const (
	maxSubjects = 1000
	maxNames    = 1000
)

// MaxBindings is the maximum number of bindings of an organization.
const MaxBindings = 10_000

// Admit implements store.Admitter. It rejects a binding that grants more than the caller has, and
// bindings beyond MaxBindings. The service itself may grant everything.
func (k *Kind) Admit(ctx context.Context, o, old *object) error {
	principal := caller.Principal(ctx)
	if principal == nil || (old != nil && apiequality.Semantic.DeepEqual(o.Spec, old.Spec)) {
		return nil // a change of metadata only grants nothing
	}
	if n := k.policy.Count(o.Namespace); old == nil && n >= MaxBindings {
		return fmt.Errorf("exceeded quota: organization %s has %d role bindings, limited to %d; "+
			"delete bindings that are not needed", o.Namespace, n, MaxBindings)
	}
	binding := convert(o)
	if err := k.policy.MayAdd(&binding); err != nil {
		return err
	}
	return k.policy.MayGrant(principal, binding)
}

// ValidateCreate implements store.CreateValidator.
func (k *Kind) ValidateCreate(_ context.Context, o *object) field.ErrorList {
	return k.checkRoleExists(o)
}

// ValidateUpdate implements store.UpdateValidator. The spec of a binding whose role was deleted
// cannot change: the permissions that the change grants cannot be compared with those of the
// caller, but would take effect if the role were created again.
func (k *Kind) ValidateUpdate(_ context.Context, o, old *object) field.ErrorList {
	errs := validation.Immutable(field.NewPath("spec", "roleRef"), o.Spec.RoleRef, old.Spec.RoleRef)
	if len(errs) == 0 && !apiequality.Semantic.DeepEqual(o.Spec, old.Spec) {
		errs = k.checkRoleExists(o)
	}
	return errs
}

// checkRoleExists checks that the role of an otherwise valid binding exists.
func (k *Kind) checkRoleExists(o *object) field.ErrorList {
	b := convert(o)
	if b.Role == "" || !isRole(b.RoleKind, b.Role) {
		return nil // Validate reports it
	}
	if err := k.policy.CheckRole(&b); err != nil {
		return field.ErrorList{field.NotFound(field.NewPath("spec", "roleRef", "name"), b.Role)}
	}
	return nil
}

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSubjects(spec.Child("subjects"), o.Spec.Subjects)
	ref := spec.Child("roleRef")
	errs = append(errs, validation.OneOf(ref.Child("apiGroup"), o.Spec.RoleRef.APIGroup, v1alpha1.GroupName)...)
	errs = append(errs, validation.Required(ref.Child("kind"), o.Spec.RoleRef.Kind)...)
	// Kind Role is for the organization's own roles, and for role names that older tools use.
	errs = append(errs, validation.OneOf(ref.Child("kind"), o.Spec.RoleRef.Kind, "ClusterRole", "Role")...)
	if name := o.Spec.RoleRef.Name; name == "" {
		errs = append(errs, field.Required(ref.Child("name"), ""))
	} else if len(errs) == 0 && !isRole(o.Spec.RoleRef.Kind, name) {
		errs = append(errs, field.NotFound(ref.Child("name"), name))
	}
	errs = append(errs, validateScope(spec, o)...)
	if len(errs) == 0 {
		if err := validateCompiled(o); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func validateSubjects(path *field.Path, subjects []v1alpha1.Subject) field.ErrorList {
	if len(subjects) > maxSubjects {
		return field.ErrorList{field.TooMany(path, len(subjects), maxSubjects)}
	}
	var errs field.ErrorList
	for i, s := range subjects {
		p := path.Index(i)
		errs = append(errs, validation.Required(p.Child("name"), s.Name)...)
		errs = append(errs, validation.Required(p.Child("kind"), s.Kind)...)
		errs = append(errs, validation.OneOf(p.Child("kind"), s.Kind,
			v1alpha1.SubjectUser, v1alpha1.SubjectServiceAccount, v1alpha1.SubjectIdentityPool)...)
		errs = append(errs, validation.OneOf(p.Child("apiGroup"), s.APIGroup, v1alpha1.GroupName)...)
	}
	return errs
}

func validateScope(spec *field.Path, o *object) field.ErrorList {
	var errs field.ErrorList
	forms := 0
	if o.Spec.ResourceNameRestriction != nil {
		forms++
	}
	if n := len(o.Spec.ResourceNames); n > 0 {
		forms++
		if n > maxNames {
			errs = append(errs, field.TooMany(spec.Child("resourceNames"), n, maxNames))
		}
	}
	if cel := o.Spec.CEL; cel != "" {
		forms++
		p := spec.Child("cel")
		errs = append(errs, validation.MaxLength(p, cel, access.MaxCEL)...)
		if len(errs) == 0 {
			if err := validateCEL(cel); err != nil {
				errs = append(errs, field.Invalid(p, cel, err.Error()))
			}
		}
	}
	if forms > 1 {
		errs = append(errs, field.Invalid(spec, field.OmitValueType{},
			"at most one of resourceNameRestriction, resourceNames and cel may be set"))
	}
	return errs
}

// isRole reports whether a name is that of a predefined role, or can be that of a custom role.
func isRole(kind, name string) bool {
	_, predefined := access.FindRole(kind, name)
	return predefined || (kind == "Role" && !access.Reserved(name))
}

// validateCompiled returns the errors that package access finds in a binding.
func validateCompiled(o *object) *field.Error {
	b := convert(o)
	err := b.Validate()
	var at *access.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		return field.Invalid(field.NewPath(at.Field), field.OmitValueType{}, at.Detail)
	}
	return field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())
}

func validateCEL(expression string) error {
	b := access.Binding{RoleKind: "ClusterRole", Role: access.Roles()[0].Name, CEL: expression}
	var at *access.FieldError
	if err := b.Validate(); errors.As(err, &at) && at.Field == "spec.cel" {
		return errors.New(at.Detail)
	}
	return nil
}
