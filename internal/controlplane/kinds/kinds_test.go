package kinds_test

import (
	"slices"
	"testing"

	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

// TestAccessKnowsEveryKind checks that every kind is in the catalogue of permissions. Otherwise no
// caller could access it.
func TestAccessKnowsEveryKind(t *testing.T) {
	t.Parallel()
	for _, definition := range kindstest.NewSet(t).Definitions() {
		info := definition.Info()
		verbs := []string{"get", "list"}
		if !info.ReadOnly {
			verbs = append(verbs, "create", "update", "delete")
		}
		for _, verb := range verbs {
			if permission, ok := access.ForVerb(info.Plural, "", verb); !ok || !permission.Known() {
				t.Errorf("%s %s requires permission %q, which is not in the catalogue", verb, info.Plural, permission)
			}
		}
	}
}

// TestKindsAreComplete checks that every kind has the data that users of the list need.
func TestKindsAreComplete(t *testing.T) {
	t.Parallel()
	var infos []store.Info
	for _, definition := range kindstest.NewSet(t).Definitions() {
		infos = append(infos, definition.Info())
	}
	if len(infos) != 11 {
		t.Errorf("got %d kinds, want 11", len(infos))
	}
	var short []string
	for _, info := range infos {
		if info.Kind == "" || info.Plural == "" || info.Singular == "" || len(info.Columns) == 0 {
			t.Errorf("%+v lacks a name or columns", info)
		}
		for _, name := range info.ShortNames {
			if slices.Contains(short, name) {
				t.Errorf("two kinds have the short name %s", name)
			}
			short = append(short, name)
		}
		owned := info.Owner == "" ||
			slices.ContainsFunc(infos, func(other store.Info) bool { return other.Kind == info.Owner })
		if !owned {
			t.Errorf("%s is owned by %s, which is not in the list", info.Kind, info.Owner)
		}
	}
}
