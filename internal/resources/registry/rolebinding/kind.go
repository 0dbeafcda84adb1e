// Package rolebinding describes the kind RoleBinding to the resource API. What
// a binding means is decided in access; controllers/rolebinding feeds it.
package rolebinding

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
	"freshet/internal/resources/validation"
)

// Bounds of a binding. It has no finalizer: it is out of force the moment the
// delete call returns.
const (
	maxSubjects = 1000
	maxNames    = 1000
	maxCEL      = 10 << 10
)

type object = v1alpha1.RoleBinding

// Rules is what access says about bindings while they are written.
type Rules struct {
	// CheckRole says whether a role exists.
	CheckRole func(kind, name string) bool
	// CheckCEL says what is wrong with an expression.
	CheckCEL func(expression string) error
	// Check says what else is wrong with a binding: names that cannot be, subjects
	// of other organizations. nil for nothing.
	Check func(o *object) *field.Error
	// MayGrant says why the caller may not give what the binding gives: nobody
	// gives away more than they have, nor one more than the organization may
	// have when it is a new binding. nil when they may.
	MayGrant func(ctx context.Context, o *object, isNew bool) error
}

// Definition describes the kind.
func Definition(rules Rules, observer registry.Observer[*object]) registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "RoleBinding", Plural: "rolebindings", Singular: "rolebinding",
		ShortNames: []string{"rb"},
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.RoleBindingList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
		Validate: func(_ context.Context, o *object) field.ErrorList {
			return validate(o, rules)
		},
		ValidateUpdate: func(_ context.Context, o, old *object) field.ErrorList {
			return validation.Immutable(field.NewPath("spec", "roleRef"), o.Spec.RoleRef, old.Spec.RoleRef)
		},
		Admit: func(ctx context.Context, o, old *object) error {
			if old != nil && apiequality.Semantic.DeepEqual(o.Spec, old.Spec) {
				return nil // labels and the like
			}
			return rules.MayGrant(ctx, o, old == nil)
		},
		Fields: func(o *object) fields.Set {
			return fields.Set{"spec.roleRef.name": o.Spec.RoleRef.Name}
		},
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Role", Description: "The role that is given.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.RoleRef.Name },
			},
			printers.Column{
				Name: "Subjects", Type: "integer", Description: "How many get it.",
				Value: func(o runtime.Object) any { return int64(len(o.(*object).Spec.Subjects)) },
			},
		),
		Observer: observer,
	})
}

func validate(o *object, rules Rules) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSubjects(spec.Child("subjects"), o.Spec.Subjects)
	ref := spec.Child("roleRef")
	errs = append(errs, validation.OneOf(ref.Child("apiGroup"), o.Spec.RoleRef.APIGroup, v1alpha1.GroupName)...)
	errs = append(errs, validation.Required(ref.Child("kind"), o.Spec.RoleRef.Kind)...)
	// Kind Role is for the names of an older generation of tools.
	errs = append(errs, validation.OneOf(ref.Child("kind"), o.Spec.RoleRef.Kind, "ClusterRole", "Role")...)
	if name := o.Spec.RoleRef.Name; name == "" {
		errs = append(errs, field.Required(ref.Child("name"), ""))
	} else if len(errs) == 0 && !rules.CheckRole(o.Spec.RoleRef.Kind, name) {
		errs = append(errs, field.NotFound(ref.Child("name"), name))
	}
	errs = append(errs, validateScope(spec, o, rules)...)
	if len(errs) == 0 && rules.Check != nil {
		if err := rules.Check(o); err != nil {
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

func validateScope(spec *field.Path, o *object, rules Rules) field.ErrorList {
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
		errs = append(errs, validation.MaxLength(p, cel, maxCEL)...)
		if len(errs) == 0 {
			if err := rules.CheckCEL(cel); err != nil {
				errs = append(errs, field.Invalid(p, cel, err.Error()))
			}
		}
	}
	if forms > 1 {
		errs = append(errs, field.Invalid(spec, field.OmitValueType{}, "at most one of resourceNameRestriction, resourceNames and cel may be set"))
	}
	return errs
}
