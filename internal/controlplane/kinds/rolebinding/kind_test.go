package rolebinding

import (
	"strings"
	"testing"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/validation/validationtest"
	"freshet/internal/identity/access"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.RoleBindingSpec
	subject := func(change func(*v1alpha1.Subject)) func(*spec) {
		return func(s *spec) { change(&s.Subjects[0]) }
	}
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"whole organization": {func(*spec) {}, nil},
		"no subjects":        {func(s *spec) { s.Subjects = nil }, nil},
		"user": {
			subject(func(s *v1alpha1.Subject) { s.Kind, s.APIGroup = "User", "cloud.vendor.io" }),
			nil,
		},
		"identity pool": {subject(func(s *v1alpha1.Subject) { s.Kind = "IdentityPool" }), nil},
		"group": {
			subject(func(s *v1alpha1.Subject) { s.Kind = "Group" }),
			[]string{"spec.subjects[0].kind: Unsupported value"},
		},
		"subject without a kind": {
			subject(func(s *v1alpha1.Subject) { s.Kind = "" }),
			[]string{"spec.subjects[0].kind: Required value"},
		},
		"subject without a name": {
			subject(func(s *v1alpha1.Subject) { s.Name = "" }),
			[]string{"spec.subjects[0].name: Required value"},
		},
		"subject from elsewhere": {
			subject(func(s *v1alpha1.Subject) { s.APIGroup = "rbac.authorization.k8s.io" }),
			[]string{"spec.subjects[0].apiGroup: Unsupported value"},
		},
		"too many subjects": {
			func(s *spec) { s.Subjects = make([]v1alpha1.Subject, 1001) },
			[]string{"spec.subjects: Too many"},
		},
		"no role":               {func(s *spec) { s.RoleRef.Name = "" }, []string{"spec.roleRef.name: Required value"}},
		"unknown role":          {func(s *spec) { s.RoleRef.Name = "king" }, []string{"spec.roleRef.name: Not found"}},
		"role of an older kind": {func(s *spec) { s.RoleRef.Kind = "Role" }, []string{"spec.roleRef.name: Not found"}},
		"role of no kind": {
			func(s *spec) { s.RoleRef.Kind = "Crown" },
			[]string{"spec.roleRef.kind: Unsupported value"},
		},
		"role without a kind": {func(s *spec) { s.RoleRef.Kind = "" }, []string{"spec.roleRef.kind: Required value"}},
		"role from elsewhere": {
			func(s *spec) { s.RoleRef.APIGroup = "x" },
			[]string{"spec.roleRef.apiGroup: Unsupported value"},
		},
		"restriction": {func(s *spec) { s.ResourceNameRestriction = &v1alpha1.ResourceNameRestriction{} }, nil},
		"names":       {func(s *spec) { s.ResourceNames = make([]v1alpha1.ResourceName, 1000) }, nil},
		"too many names": {
			func(s *spec) { s.ResourceNames = make([]v1alpha1.ResourceName, 1001) },
			[]string{"spec.resourceNames: Too many"},
		},
		"expression":         {func(s *spec) { s.CEL = "true" }, nil},
		"broken expression":  {func(s *spec) { s.CEL = "(" }, []string{"spec.cel: Invalid value"}},
		"endless expression": {func(s *spec) { s.CEL = strings.Repeat("x", 10<<10+1) }, []string{"spec.cel: Too long"}},
		"two scopes": {
			func(s *spec) { s.CEL, s.ResourceNames = "true", make([]v1alpha1.ResourceName, 1) },
			[]string{"spec: Invalid value"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{Spec: spec{
				Subjects: []v1alpha1.Subject{{Kind: "ServiceAccount", Name: "robot"}},
				RoleRef:  v1alpha1.RoleRef{Kind: "ClusterRole", Name: "org-admin"},
			}}
			tc.change(&o.Spec)
			validationtest.Expect(t, New(access.NewPolicy()).Validate(t.Context(), o), tc.want...)
		})
	}
}
