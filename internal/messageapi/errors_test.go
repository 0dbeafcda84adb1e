package messageapi

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"freshet/internal/access"
	"freshet/internal/engine"
	"freshet/internal/errs"
	"freshet/internal/identity"
	"freshet/internal/messaging/messagingtest"
)

// TestEverySentinelIsMapped asserts that no error of the domain leaves as a
// fault of ours unless it is one.
func TestEverySentinelIsMapped(t *testing.T) {
	t.Parallel()
	faults := []error{engine.ErrCompacted, engine.ErrCorrupt, engine.ErrNewerFormat}
	all := append(messagingtest.Sentinels(),
		identity.ErrNoToken, identity.ErrInvalidToken, identity.ErrTokenExpired, identity.ErrTokenTooEarly, identity.ErrWrongAudience,
		identity.ErrAccountGone, identity.ErrKeyUnknown, identity.ErrKeyRevoked, identity.ErrKeysUnavailable, access.ErrDenied, access.ErrNobody)
	for _, err := range all {
		for _, s := range []surface{messages, admin, stream} {
			wrapped := fmt.Errorf("doing something: %w", err)
			got := statusOf(wrapped, s)
			isFault := false
			for _, f := range faults {
				isFault = isFault || errors.Is(err, f)
			}
			if (got == http.StatusInternalServerError) != isFault {
				t.Errorf("%v leaves with status %d", err, got)
			}
			if got < 400 || got > 599 {
				t.Errorf("%v leaves with status %d", err, got)
			}
		}
	}
	for _, k := range errs.Kinds() {
		if w, ok := kinds[k]; !ok || w.message == 0 || w.admin == 0 {
			t.Errorf("kind %v is not mapped", k)
		}
	}
	if got := statusOf(errors.New("surprise"), messages); got != http.StatusInternalServerError {
		t.Errorf("an unknown error leaves with status %d", got)
	}
}

func TestDenialDependsOnTheSurface(t *testing.T) {
	t.Parallel()
	if got := statusOf(access.ErrDenied, messages); got != http.StatusUnauthorized {
		t.Errorf("on messages %d", got)
	}
	if got := statusOf(access.ErrDenied, admin); got != http.StatusForbidden {
		t.Errorf("on administration %d", got)
	}
}
