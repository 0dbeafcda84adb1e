package user

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/validation/validationtest"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.UserSpec
	soon := metav1.NewTime(time.Now().Add(time.Hour))
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"address alone": {func(*spec) {}, nil},
		"everything": {func(s *spec) {
			s.Type, s.Name = "internal", &v1alpha1.UserName{First: "Ada", Last: "L"}
			s.Invitation = &v1alpha1.UserInvitation{Decision: "accepted", Expiration: soon}
		}, nil},
		"no address":     {func(s *spec) { s.Email = "" }, []string{"spec.email: Required value"}},
		"not an address": {func(s *spec) { s.Email = "ada" }, []string{"spec.email: Invalid value"}},
		"half a name": {
			func(s *spec) { s.Name = &v1alpha1.UserName{First: "Ada"} },
			[]string{"spec.name.last: Required value"},
		},
		"endless name": {func(s *spec) {
			s.Name = &v1alpha1.UserName{
				First: strings.Repeat("a", 257),
				Last:  "L",
			}
		}, []string{"spec.name.first: Too long"}},
		"empty invitation": {
			func(s *spec) { s.Invitation = &v1alpha1.UserInvitation{} },
			[]string{"spec.invitation.decision: Required value", "spec.invitation.expiration: Required value"},
		},
		"undecided invitation": {func(s *spec) {
			s.Invitation = &v1alpha1.UserInvitation{
				Decision:   "perhaps",
				Expiration: soon,
			}
		}, []string{"spec.invitation.decision: Unsupported value"}},
		"invitation in capitals": {func(s *spec) {
			s.Invitation = &v1alpha1.UserInvitation{
				Decision:   "Accepted",
				Expiration: soon,
			}
		}, nil},
		"declined for all time": {func(s *spec) {
			s.Invitation = &v1alpha1.UserInvitation{
				Decision:   "declined",
				Expiration: soon,
			}
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{Spec: spec{Email: "ada@example.com"}}
			tc.change(&o.Spec)
			validationtest.Expect(t, New(Options{}).Validate(t.Context(), o), tc.want...)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"ada": true, "ada@example.com": true, "Ada+Lists@Example.com": true, "ironman@matrix.local": true,
		strings.Repeat("a", 253): true,
		".":                      false, "..": false, "a/b": false, "50%": false, strings.Repeat("a", 254): false,
	} {
		if problems := New(Options{}).ValidateName(name, false); (len(problems) == 0) != good {
			t.Errorf("name %q: got %q, want valid %v", name, problems, good)
		}
	}
}
