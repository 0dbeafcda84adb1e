package kafkaapi_test

import (
	"strings"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/surfaces/kafkaapi"
)

func TestAnonymousAccount(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	if got := kafkaapi.NewAnonymousAccount("", w.Directory, w.Issuer); got != nil {
		t.Errorf("without the setting: got %+v, want nil", got)
	}
	const audience = "urn:vendor:messaging:acme:prod"
	cluster := &kafkaapi.Cluster{Audiences: []string{audience}}
	guest := kafkaapi.NewAnonymousAccount("acme/guest", w.Directory, w.Issuer)
	if _, err := guest.Token(cluster); err == nil || !strings.Contains(err.Error(), "acme/guest of stream.anonymous") {
		t.Errorf("unknown account: got %v, want an error that names it", err)
	}
	w.Account("acme", "guest") // created while the server runs
	token, err := guest.Token(cluster)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Verifier.Authenticate(t.Context(), token, audience)
	if err != nil || p.Organization != "acme" || p.ServiceAccount != "guest" {
		t.Errorf("token: got %+v, %v; want service account guest of acme", p, err)
	}
	w.Account("acme", "root", func(a *identity.Account) { a.Admin = true })
	root := kafkaapi.NewAnonymousAccount("acme/root", w.Directory, w.Issuer)
	if _, err := root.Token(cluster); err == nil ||
		!strings.Contains(err.Error(), "is an administrator") {
		t.Errorf("account of an administrator: got %v, want an error", err)
	}
}
