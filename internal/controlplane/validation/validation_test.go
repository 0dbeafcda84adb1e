package validation_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/validation"
	"freshet/internal/controlplane/validation/validationtest"
)

func TestRules(t *testing.T) {
	t.Parallel()
	path := field.NewPath("f")
	quantity := func(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
	ref := func(namespace, name string) *v1alpha1.ObjectReference {
		return &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
	}
	tests := map[string]struct {
		got  field.ErrorList
		want []string
	}{
		"required, given":  {validation.Required(path, "x"), nil},
		"required, empty":  {validation.Required(path, ""), []string{"f: Required value"}},
		"one of, listed":   {validation.OneOf(path, "a", "a", "b"), nil},
		"one of, empty":    {validation.OneOf(path, "", "a"), nil},
		"one of, other":    {validation.OneOf(path, "A", "a"), []string{"f: Unsupported value"}},
		"between, lowest":  {validation.Between(path, 1, 1, 15), nil},
		"between, highest": {validation.Between(path, 15, 1, 15), nil},
		"between, below":   {validation.Between(path, 0, 1, 15), []string{"f: Invalid value"}},
		"between, above":   {validation.Between(path, 16, 1, 15), []string{"f: Invalid value"}},
		"quantity, lowest": {
			validation.QuantityBetween(path, *quantity("1717986918400m"), "1.6Gi", "64Gi"),
			nil,
		},
		"quantity, in other units": {validation.QuantityBetween(path, *quantity("68719476736"), "1.6Gi", "64Gi"), nil},
		"quantity, below": {
			validation.QuantityBetween(path, *quantity("1717986918399m"), "1.6Gi", "64Gi"),
			[]string{"f: Invalid value"},
		},
		"quantity, above": {
			validation.QuantityBetween(path, *quantity("65Gi"), "1.6Gi", "64Gi"),
			[]string{"f: Invalid value"},
		},
		"quantity, none": {
			validation.QuantityBetween(path, resource.Quantity{}, "1", "2"),
			[]string{"f: Required value"},
		},
		"quantity, nothing": {validation.QuantityBetween(path, *quantity("0"), "1", "2"), []string{"f: Invalid value"}},
		"unique, all":       {validation.Unique(path, []string{"a", "b"}), nil},
		"unique, one twice": {validation.Unique(path, []string{"a", "b", "a"}), []string{"f[2]: Duplicate value"}},
		"conditions": {validation.Conditions(path,
			[]v1alpha1.Condition{{Type: "A", Status: "True"}, {Type: "B", Status: "Unknown"}}), nil},
		"condition of nothing": {
			validation.Conditions(path, []v1alpha1.Condition{{}}),
			[]string{"f[0].type: Required value", "f[0].status: Required value"},
		},
		"condition, undecided": {
			validation.Conditions(path, []v1alpha1.Condition{{Type: "A", Status: "Maybe"}}),
			[]string{"f[0].status: Unsupported value"},
		},
		"condition of before": {
			validation.Conditions(path,
				[]v1alpha1.Condition{{Type: "A", Status: "True", ObservedGeneration: -1}}),
			[]string{"f[0].observedGeneration: Invalid value"},
		},
		"condition, twice": {
			validation.Conditions(path,
				[]v1alpha1.Condition{{Type: "A", Status: "True"}, {Type: "A", Status: "False"}}),
			[]string{"f[1]: Duplicate value"},
		},
		"not negative, absent": {validation.NotNegative(path, nil), nil},
		"not negative, zero":   {validation.NotNegative(path, quantity("0")), nil},
		"not negative, below":  {validation.NotNegative(path, quantity("-1m")), []string{"f: Invalid value"}},
		"name, empty":          {validation.Name(path, ""), nil},
		"name, of parts":       {validation.Name(path, "a.b-c"), nil},
		"name, of 253":         {validation.Name(path, strings.Repeat("a", 253)), nil},
		"name, of 254":         {validation.Name(path, strings.Repeat("a", 254)), []string{"f: Invalid value"}},
		"name, upper case":     {validation.Name(path, "A"), []string{"f: Invalid value"}},
		"name, a path":         {validation.Name(path, "../etc"), []string{"f: Invalid value"}},
		"reference, whole":     {validation.Reference(path, *ref("o", "n")), nil},
		"reference, here":      {validation.Reference(path, *ref("", "n")), nil},
		"reference, nameless":  {validation.Reference(path, *ref("o", "")), []string{"f.name: Required value"}},
		"reference, impossible": {
			validation.Reference(path, *ref("O", "N")),
			[]string{"f.name: Invalid value", "f.namespace: Invalid value"},
		},
		"length, just":               {validation.MaxLength(path, "abc", 3), nil},
		"length, over":               {validation.MaxLength(path, "abcd", 3), []string{"f: Too long"}},
		"immutable, same":            {validation.Immutable(path, "a", "a"), nil},
		"immutable, equal quantity":  {validation.Immutable(path, *quantity("1Gi"), *quantity("1024Mi")), nil},
		"immutable, changed":         {validation.Immutable(path, "a", "b"), []string{"f: Invalid value"}},
		"immutable, equal reference": {validation.Immutable(path, ref("o", "n"), ref("o", "n")), nil},
		"immutable, no reference": {
			validation.Immutable(path, (*v1alpha1.ObjectReference)(nil), ref("o", "n")),
			[]string{"f: Invalid value"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			validationtest.Expect(t, tc.got, tc.want...)
		})
	}
}

func TestImmutableShowsReferencesByName(t *testing.T) {
	t.Parallel()
	errs := validation.Immutable(field.NewPath("spec", "poolRef"),
		&v1alpha1.ObjectReference{Namespace: "o", Name: "new"}, &v1alpha1.ObjectReference{Namespace: "o", Name: "old"})
	if got, want := errs.ToAggregate().Error(),
		`spec.poolRef: Invalid value: "o/new": field is immutable`; got != want {
		t.Errorf("message: got %s, want %s", got, want)
	}
}

func TestEmail(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		address string
		want    string
	}{
		"plain":               {"ada@example.com", ""},
		"with a plus":         {"ada+lists@example.com", ""},
		"local host":          {"ironman@matrix.local", ""},
		"as long as can be":   {strings.Repeat("a", 64) + "@" + strings.Repeat("b", 185) + ".com", ""},
		"empty":               {"", "f: Required value"},
		"no at":               {"ada", "f: Invalid value"},
		"no local part":       {"@example.com", "f: Invalid value"},
		"no domain":           {"ada@", "f: Invalid value"},
		"with a display name": {"Ada <ada@example.com>", "f: Invalid value"},
		"in brackets":         {"<ada@example.com>", "f: Invalid value"},
		"two":                 {"a@example.com, b@example.com", "f: Invalid value"},
		"with spaces":         {" ada@example.com", "f: Invalid value"},
		"dots in a row":       {"..@example.com", "f: Invalid value"},
		"too long":            {strings.Repeat("a", 64) + "@" + strings.Repeat("b", 190) + ".com", "f: Too long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := validation.Email(field.NewPath("f"), tc.address)
			if tc.want == "" {
				validationtest.Expect(t, errs)
				return
			}
			validationtest.Expect(t, errs, tc.want)
		})
	}
}

// FuzzEmail checks that every accepted address can be shown and used as it is.
func FuzzEmail(f *testing.F) {
	for _, seed := range []string{
		"ada@example.com", "\"a b\"@c", "a@[1.2.3.4]", "=?utf-8?q?a?=@b", "a@b\r\nBcc: c@d",
		"\x00@\x00", "ü@ü.de",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if len(validation.Email(field.NewPath("f"), address)) > 0 {
			return
		}
		if len(address) > 254 || !strings.Contains(address, "@") || strings.ContainsAny(address, "\r\n\x00") {
			t.Errorf("%q is accepted, want an error", address)
		}
	})
}
