package signin_test

import (
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
)

// TestReplicasAreToldOfEnds checks that a replica that does not watch the store has ended a
// session when the call returns that ended it in another replica.
func TestReplicasAreToldOfEnds(t *testing.T) {
	t.Parallel()
	var other *signin.Service
	w := signintest.New(t, func(o *signin.Options) {
		o.Ended = func(key string, revision int64) {
			if other != nil {
				other.HearEnd(key, revision)
			}
		}
	})
	ann := w.User("acme", "ann", "ann@example.com")
	there := identity.NewDirectory()
	there.PutUser(identity.User{Organization: ann.Organization, Name: ann.User, UID: ann.UID, Email: ann.Email})
	replica := w.Replica(there)
	there.AskSessions(replica)
	other = replica
	v := identity.NewVerifier(w.Issuer, there, identity.VerifierOptions{})
	g, token := device(t, w, ann)
	who := want(t, v, token, nil)
	if err := w.People.EndGrant(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	want(t, v, token, identity.ErrSessionEnded)
	if who.Live() {
		t.Error("principal of a running call is live at the other replica, want not live")
	}
	_, _, token = console(t, w, ann)
	want(t, v, token, nil)
	if err := w.People.EndAll(t.Context(), ann.UID); err != nil {
		t.Fatal(err)
	}
	want(t, v, token, identity.ErrSessionEnded)
}
