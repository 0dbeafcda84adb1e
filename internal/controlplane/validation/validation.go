// Package validation contains the rules that more than one kind of the resource API needs. Each
// returns errors with the path of the field, which become the causes of a 422 response. Rules of a
// single kind are in the package of that kind.
package validation

import (
	"fmt"
	"net/mail"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
)

// Immutable rejects a change of a field.
func Immutable(path *field.Path, value, old any) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, printable(value), "field is immutable")}
}

// printable keeps pointers from being printed as addresses in messages.
func printable(value any) any {
	switch v := value.(type) {
	case string, bool, int32, int64, map[string]string:
		return v
	case *v1alpha1.ObjectReference:
		if v == nil {
			return ""
		}
		return v.Namespace + "/" + v.Name
	}
	return field.OmitValueType{}
}

// Required rejects an empty string.
func Required(path *field.Path, value string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(path, "")}
}

// OneOf rejects values that are not listed; an empty value is allowed.
func OneOf(path *field.Path, value string, allowed ...string) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// Between rejects a number outside of lowest to highest.
func Between(path *field.Path, value, lowest, highest int64) field.ErrorList {
	if value >= lowest && value <= highest {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be between %d and %d", lowest, highest))}
}

// QuantityBetween rejects a quantity that is missing or outside of lowest to highest.
func QuantityBetween(path *field.Path, value resource.Quantity, lowest, highest string) field.ErrorList {
	if value.IsZero() && value.Format == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if value.Cmp(resource.MustParse(lowest)) >= 0 && value.Cmp(resource.MustParse(highest)) <= 0 {
		return nil
	}
	message := fmt.Sprintf("must be between %s and %s", lowest, highest)
	if lowest == highest {
		message = "must be " + lowest
	}
	return field.ErrorList{field.Invalid(path, value.String(), message)}
}

// NotNegative rejects a quantity below zero.
func NotNegative(path *field.Path, value *resource.Quantity) field.ErrorList {
	if value == nil || value.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.String(), "must be greater than or equal to 0")}
}

// Name rejects a reference that cannot be the name of a resource; an empty one is allowed.
func Name(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return nil
	}
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Subdomain(value) {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// Reference rejects a reference without a name, or with an invalid name or namespace.
func Reference(path *field.Path, ref v1alpha1.ObjectReference) field.ErrorList {
	errs := Required(path.Child("name"), ref.Name)
	errs = append(errs, Name(path.Child("name"), ref.Name)...)
	return append(errs, Name(path.Child("namespace"), ref.Namespace)...)
}

// maxEmail is the longest address that mail servers must accept (RFC 5321).
const maxEmail = 254

// Email rejects a value that is not exactly one plain address.
func Email(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(value) > maxEmail {
		return field.ErrorList{field.TooLong(path, value, maxEmail)}
	}
	address, err := mail.ParseAddress(value)
	if err != nil || address.Address != value {
		return field.ErrorList{field.Invalid(path, value, "must be an e-mail address such as ada@example.com")}
	}
	return nil
}

// Unique rejects a list with duplicates.
func Unique(path *field.Path, values []string) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		if slices.Contains(values[:i], value) {
			errs = append(errs, field.Duplicate(path.Index(i), value))
		}
	}
	return errs
}

// Conditions rejects conditions without type or status, with invalid values, or of the same type.
func Conditions(path *field.Path, conditions []v1alpha1.Condition) field.ErrorList {
	var errs field.ErrorList
	types := make([]string, len(conditions))
	for i, c := range conditions {
		p := path.Index(i)
		types[i] = c.Type
		errs = append(errs, Required(p.Child("type"), c.Type)...)
		errs = append(errs, Required(p.Child("status"), string(c.Status))...)
		errs = append(errs, OneOf(p.Child("status"), string(c.Status),
			string(v1alpha1.ConditionTrue), string(v1alpha1.ConditionFalse), string(v1alpha1.ConditionUnknown))...)
		if c.ObservedGeneration < 0 {
			errs = append(errs, field.Invalid(p.Child("observedGeneration"), c.ObservedGeneration,
				"must be greater than or equal to 0"))
		}
	}
	return append(errs, Unique(path, types)...)
}

// MaxLength rejects a text that is too long.
func MaxLength(path *field.Path, value string, limit int) field.ErrorList {
	if len(value) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, value, limit)}
}
