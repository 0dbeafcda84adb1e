package apikey_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"freshet/internal/controlplane/kinds/apikey"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
)

// countingIssuer counts the issued tokens.
type countingIssuer struct {
	*identity.Issuer
	issued atomic.Int32
}

func (c *countingIssuer) APIKey(request identity.KeyRequest) (identity.Key, identity.Secret, error) {
	c.issued.Add(1)
	return c.Issuer.APIKey(request)
}

// TestAuthorizedBeforeIssued checks over HTTP that no token is signed for a create call that is
// denied, not admitted, invalid or a dry run.
func TestAuthorizedBeforeIssued(t *testing.T) {
	t.Parallel()
	world := identitytest.New(t)
	world.Account("acme", "robot")
	world.Account("acme", "root", func(a *identity.Account) { a.System = true })
	for i := range apikey.MaxKeys {
		world.Directory.PutKey(identity.Key{ID: fmt.Sprint(i), Organization: "acme", Instance: "full"})
	}
	for _, instance := range []string{"full", "i"} {
		world.Directory.PutInstance(identity.Instance{Organization: "acme", Name: instance, APIKeys: true})
	}
	issuer := &countingIssuer{Issuer: world.Issuer}
	kind := apikey.New(issuer, world.Directory, access.NewPolicy(), slog.New(slog.DiscardHandler))
	server := kindstest.Start(t, kindstest.Options{Kinds: []store.Definition{store.Define(kind)}})
	create := func(token, account, instance, query string) int {
		t.Helper()
		body := fmt.Sprintf(`{"metadata":{"generateName":"k-"},"spec":{"serviceAccountName":%q,"instanceName":%q}}`,
			account, instance)
		call, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			server.URL+"/apis/cloud.vendor.io/v1alpha1/namespaces/acme/apikeys"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		call.Header.Set("Authorization", "Bearer "+token)
		call.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(call)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body) // only the status code counts
		return response.StatusCode
	}
	for name, tc := range map[string]struct {
		token, account, instance, query string
		want                            int
	}{
		"denied":                {kindstest.GuestToken, "robot", "i", "", http.StatusForbidden},
		"of a system account":   {kindstest.AcmeToken, "root", "i", "", http.StatusForbidden},
		"over quota":            {kindstest.AcmeToken, "robot", "full", "", http.StatusForbidden},
		"without an account":    {kindstest.AcmeToken, "", "i", "", http.StatusUnprocessableEntity},
		"with a bad option":     {kindstest.AcmeToken, "robot", "i", "?dryRun=Some", http.StatusUnprocessableEntity},
		"by an unknown caller":  {"nobody", "robot", "i", "", http.StatusUnauthorized},
		"in a dry run":          {kindstest.AcmeToken, "robot", "i", "?dryRun=All", http.StatusCreated},
		"of a missing instance": {kindstest.AcmeToken, "robot", "absent", "", http.StatusCreated},
	} {
		if got := create(tc.token, tc.account, tc.instance, tc.query); got != tc.want {
			t.Errorf("key %s: got status %d, want %d", name, got, tc.want)
		}
		if n := issuer.issued.Swap(0); n != 0 {
			t.Errorf("key %s: got %d issued tokens, want 0", name, n)
		}
	}
	if got := create(kindstest.AcmeToken, "robot", "i", ""); got != http.StatusCreated || issuer.issued.Load() != 1 {
		t.Errorf("allowed key: got status %d and %d issued tokens, want 201 and 1", got, issuer.issued.Load())
	}
}
