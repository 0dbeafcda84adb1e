package access_test

import (
	"testing"

	"freshet/internal/identity/access"
)

// TestRevisionChangesWithEveryChange checks that every change that may affect a cached
// decision changes the revision.
func TestRevisionChangesWithEveryChange(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	binding := access.Binding{
		Organization: "acme", Name: "b", RoleKind: "Role", Role: "own",
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "a"}},
	}
	_ = p.SetBinding(binding) // its role is created later
	role := access.CustomRole{
		Organization: "acme", Name: "own",
		Permissions: []access.Permission{"messaging.topics.produce"},
	}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"role created", func() { p.SetRole(role) }},
		{"role changed", func() {
			role.Permissions = []access.Permission{"messaging.topics.consume"}
			p.SetRole(role)
		}},
		{"role deleted", func() { p.DeleteRole("acme", "own", 0) }},
		{"binding deleted", func() { p.DeleteBinding("acme", "b", 0) }},
		{"binding created", func() { _ = p.SetBinding(binding) }},
	} {
		before := p.Revision()
		step.change()
		if got := p.Revision(); got == before {
			t.Errorf("%s: revision is still %d, want another", step.name, got)
		}
	}
}
