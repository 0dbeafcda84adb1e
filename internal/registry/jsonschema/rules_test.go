package jsonschema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	t.Parallel()
	for i, c := range ruleCases {
		t.Run(fmt.Sprintf("%03d %s", i, c.want), func(t *testing.T) {
			t.Parallel()
			differences := mustCompare(t, mustParse(t, c.old), mustParse(t, c.next))
			var got []string
			for _, d := range differences {
				got = append(got, d.Type+" "+d.Path)
				if info, known := changes[change(d.Type)]; !known || info.compatible != d.Compatible {
					t.Errorf("%s: got compatible %v, want %v (known: %v)", d.Type, d.Compatible, info.compatible, known)
				}
			}
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("old %s\nnew %s\ngot  %s\nwant %s", c.old, c.next, text, c.want)
			}
		})
	}
}

// Every change of the table occurs in at least two cases, and the cases have no others.
func TestRulesCoverEveryChange(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, c := range ruleCases {
		for part := range strings.SplitSeq(c.want, "; ") {
			name, _, _ := strings.Cut(part, " ")
			seen[name]++
		}
	}
	for name := range changes {
		if seen[string(name)] < 2 {
			t.Errorf("%s occurs in %d cases", name, seen[string(name)])
		}
	}
}

// The compatible changes of docs/spec/registry.md#json-compatibility, as a second copy. All
// other changes are incompatible.
func TestVerdictOfEachChange(t *testing.T) {
	t.Parallel()
	compatible := strings.Fields(`
		ID_CHANGED TITLE_CHANGED DESCRIPTION_CHANGED DEFAULT_CHANGED SCHEMA_REMOVED TYPE_EXTENDED
		MAX_LENGTH_REMOVED MAX_LENGTH_INCREASED MIN_LENGTH_REMOVED MIN_LENGTH_DECREASED PATTERN_REMOVED
		MAXIMUM_REMOVED MAXIMUM_INCREASED MINIMUM_REMOVED MINIMUM_DECREASED
		EXCLUSIVE_MAXIMUM_REMOVED EXCLUSIVE_MAXIMUM_INCREASED EXCLUSIVE_MINIMUM_REMOVED EXCLUSIVE_MINIMUM_DECREASED
		MULTIPLE_OF_REMOVED MULTIPLE_OF_REDUCED ENUM_ARRAY_EXTENDED NOT_TYPE_NARROWED
		REQUIRED_ATTRIBUTE_REMOVED REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED
		PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
		PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
		PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
		REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL
		ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED
		UNEVALUATED_PROPERTIES_ADDED UNEVALUATED_PROPERTIES_EXTENDED
		MAX_PROPERTIES_REMOVED MAX_PROPERTIES_INCREASED MIN_PROPERTIES_REMOVED MIN_PROPERTIES_DECREASED
		DEPENDENCY_ARRAY_REMOVED DEPENDENCY_ARRAY_NARROWED DEPENDENCY_SCHEMA_REMOVED
		ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
		ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
		ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL ITEM_ADDED_TO_CLOSED_CONTENT_MODEL
		ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED UNEVALUATED_ITEMS_ADDED UNEVALUATED_ITEMS_EXTENDED
		MAX_ITEMS_REMOVED MAX_ITEMS_INCREASED MIN_ITEMS_REMOVED MIN_ITEMS_DECREASED
		MAX_CONTAINS_REMOVED MAX_CONTAINS_INCREASED MIN_CONTAINS_REMOVED MIN_CONTAINS_DECREASED UNIQUE_ITEMS_REMOVED
		COMBINED_TYPE_EXTENDED SUM_TYPE_EXTENDED PRODUCT_TYPE_NARROWED`)
	for name, info := range changes {
		if want := slices.Contains(compatible, string(name)); info.compatible != want {
			t.Errorf("%s: compatible is %v, want %v", name, info.compatible, want)
		}
	}
	for _, name := range compatible {
		if _, known := changes[change(name)]; !known {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	differences := mustCompare(t,
		mustParse(t, obj(`"age":{"type":"integer"},"name":{"type":"string"}`, closed)),
		mustParse(t, obj(`"name":{"type":"string","maxLength":5}`, closed)))
	want := []string{
		`{errorType:"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", description:"The new has a closed content model ` +
			`and is missing a property or item present at path '#/properties/age' in the old schema"}`,
		`{errorType:"MAX_LENGTH_ADDED", description:"The keyword at path '#/properties/name/maxLength' in the new ` +
			`schema is not present in the old schema"}`,
	}
	for i, d := range differences {
		if d.String() != want[i] {
			t.Errorf("got  %s\nwant %s", d, want[i])
		}
	}
	if got := differences[1].Describe("old", "new"); !strings.Contains(got,
		"in the old schema is not present in the new schema") {
		t.Errorf("forward direction: got %s, want old and new exchanged", got)
	}
	braces := Difference{Type: "TYPE_CHANGED", Path: "#/properties/{new}"}
	if !strings.Contains(braces.String(), "'#/properties/{new}'") {
		t.Errorf("braces in a path were replaced: %s", braces)
	}
	for name, info := range changes {
		if text := (Difference{Type: string(name), Path: "#/x"}).String(); !strings.Contains(text, "'#/x'") ||
			info.text == "" {
			t.Errorf("%s has no description: %s", name, text)
		}
	}
}
