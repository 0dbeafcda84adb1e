package access_test

import (
	"testing"

	"freshet/internal/identity/access"
)

// TestRevisionMovesWithEveryChange: whoever remembers a decision has to hear of
// everything that may change it.
func TestRevisionMovesWithEveryChange(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	binding := access.Binding{
		Organization: "acme", Name: "b", RoleKind: "Role", Role: "own",
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "a"}},
	}
	_ = p.SetBinding(binding) // its role comes later
	role := access.CustomRole{
		Organization: "acme", Name: "own",
		Permissions: []access.Permission{"messaging.topics.produce"},
	}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"a role comes", func() { p.SetRole(role) }},
		{"a role changes", func() {
			role.Permissions = []access.Permission{"messaging.topics.consume"}
			p.SetRole(
				role)
		}},
		{"a role goes", func() { p.DeleteRole("acme", "own", 0) }},
		{"a binding goes", func() { p.DeleteBinding("acme", "b", 0) }},
		{"a binding comes", func() { _ = p.SetBinding(binding) }},
	} {
		before := p.Revision()
		step.change()
		if got := p.Revision(); got == before {
			t.Errorf("%s: got revision %d again, want another", step.name, got)
		}
	}
}
