package apikey

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/validation/validationtest"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
)

// newKind returns the kind with an account robot in the organization acme.
func newKind(t *testing.T) *Kind {
	t.Helper()
	world := identitytest.New(t)
	world.Account("acme", "robot")
	return New(world.Issuer, world.Directory, access.NewPolicy(), slog.New(slog.DiscardHandler))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	kind := newKind(t)
	type spec = v1alpha1.APIKeySpec
	metadata := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = "v"
		}
		return m
	}
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"for an organization": {func(*spec) {}, nil},
		"for an instance":     {func(s *spec) { s.InstanceName = "i" }, nil},
		"no account": {
			func(s *spec) { s.ServiceAccountName = "" },
			[]string{"spec.serviceAccountName: Required value"},
		},
		"impossible account": {
			func(s *spec) { s.ServiceAccountName = "A B" },
			[]string{"spec.serviceAccountName: Invalid value"},
		},
		"impossible instance": {func(s *spec) { s.InstanceName = "*" }, []string{"spec.instanceName: Invalid value"}},
		"longest description": {func(s *spec) { s.Description = strings.Repeat("x", 1024) }, nil},
		"endless description": {
			func(s *spec) { s.Description = strings.Repeat("x", 1025) },
			[]string{"spec.description: Too long"},
		},
		"most metadata": {func(s *spec) { s.CustomizedMetadata = metadata(32) }, nil},
		"too much metadata": {
			func(s *spec) { s.CustomizedMetadata = metadata(33) },
			[]string{"spec.customizedMetadata: Too many"},
		},
		"longest metadata": {func(
			s *spec,
		) {
			s.CustomizedMetadata = map[string]string{"a": strings.Repeat("x", 4095)}
		}, nil},
		"endless metadata": {func(
			s *spec,
		) {
			s.CustomizedMetadata = map[string]string{"a": strings.Repeat("x", 4096)}
		}, []string{"spec.customizedMetadata: Too long"}},
		"empty encryption key": {
			func(s *spec) { s.EncryptionKey = &v1alpha1.EncryptionKey{} },
			[]string{"spec.encryptionKey: Required value"},
		},
		"two encryption keys": {
			func(s *spec) { s.EncryptionKey = &v1alpha1.EncryptionKey{PEM: "x", JWK: "y"} },
			[]string{"spec.encryptionKey: Invalid value"},
		},
		"bad encryption key": {
			func(s *spec) { s.EncryptionKey = &v1alpha1.EncryptionKey{PEM: "x"} },
			[]string{"spec.encryptionKey.pem: Invalid value"},
		},
		"endless encryption key": {func(
			s *spec,
		) {
			s.EncryptionKey = &v1alpha1.EncryptionKey{PEM: strings.Repeat("x", 16<<10+1)}
		}, []string{"spec.encryptionKey.pem: Too long"}},
		"endless key as a JWK": {func(
			s *spec,
		) {
			s.EncryptionKey = &v1alpha1.EncryptionKey{JWK: strings.Repeat("x", 16<<10+1)}
		}, []string{"spec.encryptionKey.jwk: Too long"}},
		"key revoked from birth": {func(s *spec) { s.Revoke = true }, nil},
		"expired before creation": {func(
			s *spec,
		) {
			s.ExpirationTime = &metav1.Time{Time: time.Now().Add(-time.Second)}
		}, []string{"spec.expirationTime: Invalid value"}},
		"expires soon": {func(s *spec) { s.ExpirationTime = &metav1.Time{Time: time.Now().Add(time.Hour)} }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{ObjectMeta: metav1.ObjectMeta{Namespace: "acme"}, Spec: spec{ServiceAccountName: "robot"}}
			tc.change(&o.Spec)
			validationtest.Expect(t, append(kind.Validate(t.Context(), o), kind.ValidateCreate(t.Context(), o)...),
				tc.want...)
		})
	}
}

func TestAnUnknownAccountIsRefusedOnce(t *testing.T) {
	t.Parallel()
	kind := newKind(t)
	for account, want := range map[string]string{
		"":      "spec.serviceAccountName: Required value",
		"A B":   "spec.serviceAccountName: Invalid value",
		"ghost": "spec.serviceAccountName: Not found",
	} {
		o := &object{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme"},
			Spec:       v1alpha1.APIKeySpec{ServiceAccountName: account},
		}
		validationtest.Expect(t, append(kind.Validate(t.Context(), o), kind.ValidateCreate(t.Context(), o)...), want)
	}
}

func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.APIKeySpec
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"description": {func(s *spec) { s.Description = "new" }, nil},
		"revoke":      {func(s *spec) { s.Revoke = true }, nil},
		"instance":    {func(s *spec) { s.InstanceName = "j" }, []string{"spec.instanceName: Invalid value"}},
		"account": {
			func(s *spec) { s.ServiceAccountName = "other" },
			[]string{"spec.serviceAccountName: Invalid value"},
		},
		"expiry": {func(s *spec) { s.ExpirationTime = nil }, []string{"spec.expirationTime: Invalid value"}},
		"encryption key": {
			func(s *spec) { s.EncryptionKey.PEM = "other" },
			[]string{"spec.encryptionKey: Invalid value"},
		},
		"claims": {
			func(s *spec) { s.CustomizedMetadata = map[string]string{"a": "b"} },
			[]string{"spec.customizedMetadata: Invalid value"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := &object{Spec: spec{
				InstanceName: "i", ServiceAccountName: "robot",
				ExpirationTime: &metav1.Time{Time: time.Unix(1e9, 0)}, EncryptionKey: &v1alpha1.EncryptionKey{PEM: "x"},
			}}
			o := old.DeepCopy()
			tc.change(&o.Spec)
			validationtest.Expect(t, (*Kind)(nil).ValidateUpdate(t.Context(), o, old), tc.want...)
		})
	}
}

func TestRevocationIsOneWay(t *testing.T) {
	t.Parallel()
	old := &object{Spec: v1alpha1.APIKeySpec{Revoke: true}}
	validationtest.Expect(t, (*Kind)(nil).ValidateUpdate(t.Context(), &object{}, old), "spec.revoke: Invalid value")
}

func TestState(t *testing.T) {
	t.Parallel()
	condition := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"new": {nil, "False Pending"},
		"issued": {[]metav1.Condition{
			condition("Issued", "True", "Issued"),
			condition("Expired", "False", "NotExpired"), condition("Revoked", "False", "NotRevoked"),
		}, "True Issued"},
		"expired": {[]metav1.Condition{
			condition("Issued", "True", "Issued"), condition("Expired", "True", "Expired"),
			condition("Revoked", "False", "NotRevoked"),
		}, "False Expired"},
		"revoked": {[]metav1.Condition{
			condition("Issued", "True", "Issued"),
			condition("Expired", "False", "NotExpired"), condition("Revoked", "True", "Revoked"),
		}, "False Revoked"},
		"failed": {[]metav1.Condition{condition("Issued", "False", "AccountNotFound")}, "False AccountNotFound"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ready, reason := State(&object{Status: v1alpha1.APIKeyStatus{Conditions: tc.conditions}})
			if got := ready + " " + reason; got != tc.want {
				t.Errorf("state: got %s, want %s", got, tc.want)
			}
		})
	}
}
