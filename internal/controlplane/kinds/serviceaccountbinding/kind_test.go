package serviceaccountbinding

import (
	"testing"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/validation/validationtest"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.ServiceAccountBindingSpec
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"both ends": {func(*spec) {}, nil},
		"no account": {
			func(s *spec) { s.ServiceAccountName = "" },
			[]string{"spec.serviceAccountName: Required value"},
		},
		"impossible account": {
			func(s *spec) { s.ServiceAccountName = "Robot" },
			[]string{"spec.serviceAccountName: Invalid value"},
		},
		"no member": {func(s *spec) { s.PoolMemberRef.Name = "" }, []string{"spec.poolMemberRef.name: Required value"}},
		"impossible member": {
			func(s *spec) { s.PoolMemberRef.Namespace = "a/b" },
			[]string{"spec.poolMemberRef.namespace: Invalid value"},
		},
		"maximum number of roles": {func(s *spec) { s.AWSAssumeRoleARNs = make([]string, 64) }, nil},
		"too many roles": {
			func(s *spec) { s.AWSAssumeRoleARNs = make([]string, 65) },
			[]string{"spec.awsAssumeRoleARNs: Too many"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{Spec: spec{
				ServiceAccountName: "robot",
				PoolMemberRef:      v1alpha1.ObjectReference{Name: "m", Namespace: "n"},
			}}
			tc.change(&o.Spec)
			validationtest.Expect(t, New(nil, nil).Validate(t.Context(), o), tc.want...)
		})
	}
}
