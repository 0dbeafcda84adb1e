package ensemble

import (
	"strings"
	"testing"

	"freshet/internal/ensemble/membership"
)

// TestDifferentList checks that a member with another list than the others does not become ready,
// that the message has both lists and their difference, and that a majority with the same list is
// not kept from starting.
func TestDifferentList(t *testing.T) {
	t.Parallel()
	record := func(name, list string) membership.Record {
		return membership.Record{Name: name, Members: strings.Fields(list)}
	}
	for name, tc := range map[string]struct {
		self, own string
		live      []membership.Record
		want      []string // in the text; nil for no difference
	}{
		"alone":           {"a", "a b c", []membership.Record{record("a", "a b c")}, nil},
		"the same":        {"a", "a b c", []membership.Record{record("a", "a b c"), record("b", "a b c")}, nil},
		"earlier version": {"a", "a b c", []membership.Record{record("a", "a b c"), {Name: "b"}}, nil},
		"another name": {
			"c", "a c d",
			[]membership.Record{record("a", "a b c"), record("b", "a b c"), record("c", "a c d")},
			[]string{
				"this member has a, c, d", "member a has a, b, c", "only this member has d", "only that one has b",
			},
		},
		"another order": {"b", "b a c", []membership.Record{record("a", "a b c")}, []string{"the order differs"}},
		"majority":      {"a", "a b c", []membership.Record{record("b", "a b c"), record("c", "a c d")}, nil},
		"one each":      {"a", "a b c", []membership.Record{record("c", "a b c d e")}, []string{"does not have d, e"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := differentList(tc.self, strings.Fields(tc.own), tc.live)
			if (got != "") != (tc.want != nil) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
		})
	}
}
