package brokerhttp

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging/messagingtest"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// TestEverySentinelIsMapped checks that no error of the domain is an internal error
// unless it is listed as one.
func TestEverySentinelIsMapped(t *testing.T) {
	t.Parallel()
	faults := []error{engine.ErrCompacted}
	all := append(messagingtest.Sentinels(),
		identity.ErrNoToken, identity.ErrInvalidToken, identity.ErrTokenExpired, identity.ErrTokenTooEarly,
		identity.ErrWrongAudience,
		identity.ErrAccountGone, identity.ErrKeyUnknown, identity.ErrKeyRevoked, identity.ErrKeyNotAccepted,
		identity.ErrKeysUnavailable, access.ErrDenied, access.ErrNoPrincipal)
	for _, err := range all {
		for _, s := range []Column{MessageCalls, AdminCalls} {
			wrapped := fmt.Errorf("doing something: %w", err)
			got := s.Status(wrapped)
			isFault := false
			for _, f := range faults {
				isFault = isFault || errors.Is(err, f)
			}
			if (got == http.StatusInternalServerError) != isFault {
				t.Errorf("%v: got status %d, want an internal error: %v", err, got, isFault)
			}
			if got < 400 || got > 599 {
				t.Errorf("%v: got status %d, want 400 to 599", err, got)
			}
		}
	}
	for k := range errs.KindCount {
		if w, ok := kinds[k]; !ok || w.message == 0 || w.admin == 0 {
			t.Errorf("kind %v is not mapped", k)
		}
	}
	if got := MessageCalls.Status(errors.New("surprise")); got != http.StatusInternalServerError {
		t.Errorf("unknown error: got status %d, want 500", got)
	}
}

func TestDenialDependsOnTheColumn(t *testing.T) {
	t.Parallel()
	if got := MessageCalls.Status(access.ErrDenied); got != http.StatusUnauthorized {
		t.Errorf("message calls: got status %d, want 401", got)
	}
	if got := AdminCalls.Status(access.ErrDenied); got != http.StatusForbidden {
		t.Errorf("administrative calls: got status %d, want 403", got)
	}
}
