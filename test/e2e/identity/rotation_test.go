package identity_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"freshet/test/tally"
)

// rotate requests new credentials for an account.
func (w *world) rotate(account, as string, spec map[string]any) reply {
	w.Helper()
	c := call{method: http.MethodPost, path: "serviceaccounts/" + account + "/rotate", as: as, secret: true}
	if spec != nil {
		c.body = map[string]any{"spec": spec}
	}
	return w.do(c)
}

// file returns the credentials in the response to a rotation.
func (r reply) file() credentials {
	r.t.Helper()
	text, err := base64.StdEncoding.DecodeString(r.text("status.privateKeyData"))
	if err != nil {
		r.t.Fatal(err)
	}
	var c credentials
	if err := json.Unmarshal(text, &c); err != nil {
		r.t.Fatalf("%s: %v", r.what, err)
	}
	registerSecret("the credentials file of a rotation", r.text("status.privateKeyData"))
	registerSecret("the client secret of a rotation", c.ClientSecret)
	return c
}

// signIn requests a token and returns the status.
func (w *world) signIn(c credentials) int {
	w.Helper()
	return w.do(call{method: http.MethodPost, path: "/oauth/token", as: "-", secret: true, body: map[string]string{
		"grant_type": "client_credentials", "client_id": c.ClientID, "client_secret": c.ClientSecret,
	}}).status
}

// TestRotation rotates credentials several times: two are valid at a time, never three, and
// ending credentials also ends their tokens.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.account("robot", true)
	old := w.token(first, w.server.URL)
	r := w.rotate("robot", "", nil).want(201)
	second := r.file()
	if second.ClientID == first.ClientID || second.ClientEmail != first.ClientEmail ||
		second.ClientSecret == first.ClientSecret {
		t.Errorf("got client %s of %s after %s of %s, want new credentials of the same account", second.ClientID,
			second.ClientEmail, first.ClientID, first.ClientEmail)
	}
	ends, err := time.Parse(time.RFC3339, r.text("status.replaced.expirationTime"))
	if left := time.Until(ends); err != nil || left < 23*time.Hour || left > 24*time.Hour ||
		r.text("status.replaced.clientID") != first.ClientID {
		t.Errorf("got %s replaced until %s (%v), want %s in 24 hours", r.text("status.replaced.clientID"), ends, err,
			first.ClientID)
	}
	if got := w.credentialsOf("robot"); got != second {
		t.Errorf("account has client %s, want %s", got.ClientID, second.ClientID)
	}
	if data := w.do(call{path: "serviceaccounts/robot", secret: true}).text("status.privateKeyData"); strings.Contains(
		decoded(t, data), first.ClientSecret) {
		t.Error("replaced secret can be read")
	}
	if a, b := w.signIn(first), w.signIn(second); a != 200 || b != 200 {
		t.Errorf("requesting tokens with the old and the new secret: %d, %d, want 200, 200", a, b)
	}
	fresh := w.token(second, w.server.URL)

	third := w.rotate("robot", "", map[string]any{"overlapSeconds": 3600}).want(201).file()
	for name, tc := range map[string]struct{ got, want int }{
		"the first secret": {w.signIn(first), 401}, "its token": {w.onResources(old), 401},
		"the second secret": {w.signIn(second), 200}, "its token too": {w.onResources(fresh), 200},
		"the third secret": {w.signIn(third), 200},
	} {
		if tc.got != tc.want {
			t.Errorf("after the second rotation, %s: got %d, want %d", name, tc.got, tc.want)
		}
	}
	if r := w.rotate("robot", "", map[string]any{"endReplaced": true}).want(201); r.at(
		"status.privateKeyData") != nil || r.at("status.replaced") != nil {
		t.Errorf("ending the replaced credentials created new ones: %s", r.body)
	}
	if a, b, c := w.signIn(second), w.onResources(fresh), w.signIn(third); a != 401 || b != 401 || c != 200 {
		t.Errorf("after ending them: second secret %d, its token %d, third secret %d; want 401, 401, 200", a, b, c)
	}
	last := w.token(third, w.server.URL)
	fourth := w.rotate("robot", "", map[string]any{"overlapSeconds": 0}).want(201)
	if a, b := w.signIn(third), w.onResources(last); a != 401 || b != 401 || fourth.at("status.replaced") != nil {
		t.Errorf("without an overlap: got %d for the old secret, %d for its token; want 401, 401", a, b)
	}
	if got := w.signIn(fourth.file()); got != 200 {
		t.Errorf("last credentials: got %d, want 200", got)
	}
}

func decoded(t *testing.T, data string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRotationOfOneself checks that an account can rotate its own credentials if it proves the old secret.
func TestRotationOfOneself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.account("robot", false)
	token := w.token(c, w.server.URL)
	next := w.rotate("robot", token, map[string]any{"clientSecret": c.ClientSecret})
	if next.want(201); next.at("spec.clientSecret") != nil {
		t.Error("response repeats the secret")
	}
	if got := w.signIn(next.file()); got != 200 {
		t.Errorf("requesting a token with the new credentials: got %d, want 200", got)
	}
	for name, tc := range map[string]struct {
		spec map[string]any
		want int
	}{
		"too long":          {map[string]any{"overlapSeconds": 2592001}, 422},
		"negative":          {map[string]any{"overlapSeconds": -1}, 422},
		"two things":        {map[string]any{"overlapSeconds": 1, "endReplaced": true}, 422},
		"an unknown field":  {map[string]any{"overlap": 0}, 400},
		"not even a number": {map[string]any{"overlapSeconds": "soon"}, 400},
	} {
		if r := w.rotate("robot", "", tc.spec); r.status != tc.want {
			t.Errorf("%s: %d, want %d: %.300s", name, r.status, tc.want, r.body)
		}
	}
	w.rotate("nobody", "", nil).want(404)
}

// TestAttackOwnCredentials checks that a stolen key or token of an account cannot be used to
// get its credentials, so that revoking the key ends the access.
func TestAttackOwnCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.account("robot", false)
	other := w.account("other", false)
	stolen := map[string]string{
		"token": w.token(c, w.server.URL),
		"key": w.do(call{
			method: http.MethodPost, path: "apikeys", secret: true,
			body: object("leaked", map[string]any{"serviceAccountName": "robot"}),
		}).
			want(201).text("status.token"),
	}
	registerSecret("a leaked key", stolen["key"])
	attempts, successes := 0, 0
	try := func(what string, r reply, got bool) {
		t.Helper()
		if attempts++; got {
			successes++
			t.Errorf("%s: attacker got %.300s", what, r.body)
		}
	}
	for name, as := range stolen {
		for what, read := range map[string]call{
			"get":       {path: "serviceaccounts/robot"},
			"status":    {path: "serviceaccounts/robot/status"},
			"list":      {path: "serviceaccounts"},
			"watch":     {path: "serviceaccounts?watch=true&timeoutSeconds=1&resourceVersion=0"},
			"watch one": {path: "serviceaccounts?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Drobot"},
			"other":     {path: "serviceaccounts/other"},
			"patch": {
				method: http.MethodPatch, path: "serviceaccounts/robot",
				kind: "application/merge-patch+json",
				body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}},
			},
			"delete dry": {method: http.MethodDelete, path: "serviceaccounts/robot?dryRun=All"},
		} {
			read.as, read.secret = as, true
			r := w.do(read)
			try(name+" "+what, r, strings.Contains(string(r.body), `"privateKeyData":"`) ||
				strings.Contains(string(r.body), c.ClientSecret))
		}
		for what, spec := range map[string]map[string]any{
			"rotate": nil, "rotate at once": {"overlapSeconds": 0}, "end": {"endReplaced": true},
			"guess": {"clientSecret": "guess"}, "another's secret": {"clientSecret": other.ClientSecret},
			"empty": {"clientSecret": ""},
		} {
			r := w.rotate("robot", as, spec)
			try(name+" "+what, r, r.status < 400)
		}
		r := w.rotate("other", as, map[string]any{"clientSecret": other.ClientSecret})
		try(name+" rotate another", r, r.status < 400)
	}
	r := w.patch("apikeys/leaked", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	if got := r.header.Values("Warning"); len(got) > 0 {
		t.Errorf("revoking a key without permissions warns: %q", got)
	}
	r = w.do(call{path: "serviceaccounts/robot", as: stolen["key"], secret: true})
	try("after the revocation", r, r.status != 401)
	if got := w.signIn(c); got != 200 {
		t.Errorf("credentials of the account: got %d, want 200", got)
	}
	tally.Attack(t, "keep access to an account with a stolen key", attempts, successes)
}

// TestRevocationWarnsOfOtherCredentials checks the warning at the revocation of a key that could read
// credentials, because its holder may have obtained others.
func TestRevocationWarnsOfOtherCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("boss", true)
	r := w.do(call{
		method: http.MethodPost, path: "apikeys", secret: true,
		body: object("boss", map[string]any{"serviceAccountName": "boss"}),
	}).want(201)
	registerSecret("a key of boss", r.text("status.token"))
	r = w.patch("apikeys/boss", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	got := strings.Join(r.header.Values("Warning"), " ")
	for _, want := range []string{"read the credentials", "/rotate", "role bindings", r.text("status.keyId")} {
		if !strings.Contains(got, want) {
			t.Errorf("Warning: got %q, want it to contain %q", got, want)
		}
	}
}
