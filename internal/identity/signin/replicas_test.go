package signin_test

import (
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
)

// otherReplica applies the ends of sessions of one service to another one, like a second process.
type otherReplica struct{ service *signin.Service }

// NotifyEnd implements signin.Replicas.
func (r *otherReplica) NotifyEnd(key string, revision int64) {
	if r.service != nil {
		r.service.ApplyEnd(key, revision)
	}
}

// TestReplicasAreNotifiedOfEnds checks that a replica that does not watch the store has ended a
// session when the call returns that ended it in another replica.
func TestReplicasAreNotifiedOfEnds(t *testing.T) {
	t.Parallel()
	other := &otherReplica{}
	w := signintest.New(t, func(o *signin.Options) { o.Replicas = other })
	ann := w.User("acme", "ann", "ann@example.com")
	exists := identity.NewDirectory()
	exists.PutUser(identity.User{Organization: ann.Organization, Name: ann.User, UID: ann.UID, Email: ann.Email})
	replica := w.Replica(exists)
	exists.SetSessionLoader(replica.Grants)
	other.service = replica
	v := identity.NewVerifier(w.Issuer, exists, identity.VerifierOptions{})
	g, token := device(t, w, ann)
	principal := checkToken(t, v, token, nil)
	if err := w.SignIn.Grants.EndGrant(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	checkToken(t, v, token, identity.ErrSessionEnded)
	if principal.Live() {
		t.Error("principal of a running call is live at the other replica, want not live")
	}
	_, _, token = console(t, w, ann)
	checkToken(t, v, token, nil)
	if err := w.SignIn.Sessions.EndAll(t.Context(), ann.UID); err != nil {
		t.Fatal(err)
	}
	checkToken(t, v, token, identity.ErrSessionEnded)
}
