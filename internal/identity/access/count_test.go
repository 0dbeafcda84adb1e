package access_test

import (
	"strconv"
	"testing"

	"freshet/internal/identity/access"
)

func TestCountFollowsBindings(t *testing.T) {
	t.Parallel()
	p := access.NewPolicy()
	set := func(organization, name, role string) {
		// the error is ignored, because some bindings are not valid
		_ = p.SetBinding(access.Binding{Organization: organization, Name: name, RoleKind: "ClusterRole", Role: role})
	}
	for i := range 5 {
		set("acme", strconv.Itoa(i), "org-admin")
	}
	set("acme", "0", "org-readonly") // replaced
	set("acme", "broken", "king")    // grants nothing, but counts
	set("globex", "0", "org-admin")
	p.DeleteBinding("acme", "1", 0)
	p.DeleteBinding("acme", "1", 0)
	p.DeleteBinding("acme", "never", 0)
	for organization, want := range map[string]int{"acme": 5, "globex": 1, "unknown": 0} {
		if got := p.Count(organization); got != want {
			t.Errorf("%s has %d bindings, want %d", organization, got, want)
		}
	}
}
