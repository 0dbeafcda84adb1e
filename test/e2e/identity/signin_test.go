package identity_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"freshet/test/tally"
)

// person is a user with a browser.
type person struct {
	*world
	http *http.Client
}

func (w *world) person() *person {
	w.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	return &person{w, &http.Client{
		Jar: jar, Timeout: client.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var formToken = regexp.MustCompile(`name="proof" value="([^"]*)"`)

// open requests a page and returns the token of its form.
func (p *person) open(page string) (status int, location, proof string) {
	p.Helper()
	return p.send(http.MethodGet, page, nil)
}

func (p *person) send(method, page string, form url.Values) (status int, location, proof string) {
	p.Helper()
	if strings.HasPrefix(page, "/") {
		page = p.server.URL + page
	}
	r, err := http.NewRequestWithContext(p.Context(), method, page, strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := p.http.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	if found := formToken.FindSubmatch(body); found != nil {
		proof = html.UnescapeString(string(found[1]))
	}
	return res.StatusCode, res.Header.Get("Location"), proof
}

// submit opens a page and sends its form.
func (p *person) submit(page, action string, fields map[string]string) (status int, location string) {
	p.Helper()
	_, _, proof := p.open(page)
	form := url.Values{"proof": {proof}}
	for name, value := range fields {
		form.Set(name, value)
	}
	status, location, _ = p.send(http.MethodPost, action, form)
	return status, location
}

// accept opens an invitation and sets a password.
func (p *person) accept(link, password string) {
	p.Helper()
	registerSecret("an invitation", tokenOf(link))
	registerSecret("a password", password)
	status, _ := p.submit(link, "/oauth/invite",
		map[string]string{"token": tokenOf(link), "password": password, "repeated": password})
	if status != http.StatusSeeOther {
		p.Fatalf("setting a password: got %d, want 303", status)
	}
}

func tokenOf(link string) string {
	_, token, _ := strings.Cut(link, "token=")
	return token
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
}

const codeVerifier = "a-verifier-that-is-as-long-as-the-rfc-demands-it-to-be"

// console requests tokens as the console does.
func (p *person) console() tokens {
	p.Helper()
	sum := sha256.Sum256([]byte(codeVerifier))
	redirect := p.server.URL + "/console/"
	_, location, _ := p.open("/oauth/authorize?" + url.Values{
		"client_id": {"freshet-console"}, "redirect_uri": {redirect}, "response_type": {"code"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"state": {"x"},
	}.Encode())
	back, err := url.Parse(location)
	if err != nil || back.Query().Get("code") == "" {
		p.Fatalf("authorization endpoint redirected to %q, want a code", location)
	}
	return p.exchange(http.StatusOK, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"freshet-console"}, "code": {back.Query().Get("code")},
		"redirect_uri": {redirect}, "code_verifier": {codeVerifier},
	})
}

// exchange calls the token endpoint.
func (p *person) exchange(want int, form url.Values) (t tokens) {
	p.Helper()
	r := p.do(call{
		method: http.MethodPost, path: "/oauth/token", as: "-", body: form.Encode(),
		kind: "application/x-www-form-urlencoded", secret: true,
	}).want(want)
	if err := json.Unmarshal(r.body, &t); err != nil {
		p.Fatal(err)
	}
	for name, secret := range map[string]string{
		"an access token": t.Access, "a refresh token": t.Refresh,
		"an id token": t.ID,
	} {
		if secret != "" {
			registerSecret(name, secret)
		}
	}
	return t
}

// invited creates a user with a password, and returns their browser.
func (w *world) invited(name, email string) *person {
	w.Helper()
	w.post("users", object(name, map[string]any{"email": email})).want(201)
	link := w.do(call{method: http.MethodPost, path: "users/" + name + "/invite", secret: true}).want(
		201).text("status.url")
	p := w.person()
	p.accept(link, "a long password of "+name)
	return p
}

// TestPeopleSignIn goes through the life cycle of a user: invited, ready, using every surface
// within their roles, signed out, signed in again, with another e-mail address, deleted.
func TestPeopleSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("i")
	host := w.cluster("c", "i")
	w.post("users", object("ann",
		map[string]any{"email": "ann@example.org", "name": map[string]any{"first": "Ann", "last": "Lee"}})).want(201)
	link := w.do(call{
		method: http.MethodPost, path: "users/ann/invite",
		body: map[string]any{"spec": map[string]any{"lifetimeSeconds": 3600}}, secret: true,
	}).want(
		201).text("status.url")
	w.eventually("users/ann", "invited",
		func(r reply) bool { return r.conditions() == "Active=False(Invited) Ready=False(Invited)" })
	ann := w.person()
	ann.accept(link, "a long password of ann")
	w.eventually("users/ann", "ready",
		func(r reply) bool { return r.conditions() == "Active=True(CanSignIn) Ready=True(CanSignIn)" })

	got := ann.console()
	me := w.do(call{path: "/oauth/userinfo", as: got.Access}).want(200)
	if me.text("kind") != "User" || me.text("preferred_username") != "ann" || me.text("name") != "Ann Lee" ||
		me.text("organization") != w.org || me.text("expires_at") == "" {
		t.Errorf("userinfo: got %s, want Ann Lee", me.body)
	}
	if w.onResources(got.Access) != 403 {
		t.Errorf("without a role: got %d, want 403", w.onResources(got.Access))
	}
	w.post("rolebindings", object("ann", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ClusterRole", "name": "org-admin"},
		"subjects": []any{map[string]any{"apiGroup": "cloud.vendor.io", "kind": "User", "name": "ann"}},
	})).want(201)
	works := func(token string, want bool) {
		t.Helper()
		for surface, status := range map[string]int{
			"resources": w.onResources(token),
			"messages":  w.onMessages(token, host), "registry": w.onRegistry(token, host),
		} {
			if (status < 400) != want || !want && status != 401 {
				t.Errorf("%s: got %d, want success: %v", surface, status, want)
			}
		}
	}
	works(got.Access, true)

	next := ann.exchange(200, url.Values{
		"grant_type": {"refresh_token"}, "client_id": {"freshet-console"},
		"refresh_token": {got.Refresh},
	})
	works(next.Access, true)
	ann.do(call{
		method: http.MethodPost, path: "/oauth/revoke", as: "-", kind: "application/x-www-form-urlencoded",
		body: url.Values{"client_id": {"freshet-console"}, "token": {next.Refresh}}.Encode(),
	}).want(200)
	works(next.Access, false)
	works(got.Access, false)
	if _, location, _ := ann.open("/oauth/account"); !strings.HasPrefix(location, "/oauth/signin?") {
		t.Errorf("after signing out of the console: got %q, want the sign-in page", location)
	}

	signIn := func() int {
		t.Helper()
		status, _ := ann.submit("/oauth/signin", "/oauth/signin",
			map[string]string{"organization": w.org, "name": "ann@example.org", "password": "a long password of ann"})
		return status
	}
	if got := signIn(); got != 303 {
		t.Fatalf("signing in again: got %d, want 303", got)
	}
	again := ann.console()
	works(again.Access, true)
	w.patch("users/ann", map[string]any{"spec": map[string]any{"email": "ann@example.net"}}).want(200)
	works(again.Access, false)
	if got := signIn(); got != 401 {
		t.Errorf("password after a change of the address: got %d, want 401", got)
	}
	w.eventually("users/ann", "not invited",
		func(r reply) bool { return strings.HasSuffix(r.conditions(), "Ready=False(NotInvited)") })
	w.patch("users/ann", map[string]any{"spec": map[string]any{"email": "ann@example.org"}}).want(200)
	if got := signIn(); got != 303 {
		t.Fatalf("password with the original address: got %d, want 303", got)
	}
	works(again.Access, false) // ended sessions stay ended
	last := ann.console()
	works(last.Access, true)
	w.delete("users/ann").want(200)
	works(last.Access, false)
	w.post("users", object("ann", map[string]any{"email": "ann@example.org"})).want(201)
	works(last.Access, false)
	ann.exchange(400, url.Values{
		"grant_type": {"refresh_token"}, "client_id": {"freshet-console"},
		"refresh_token": {last.Refresh},
	})
	if got := signIn(); got != 401 {
		t.Errorf("password of a recreated user: got %d, want 401", got)
	}
}

// TestTheOwnerSignsInByALink signs in with a link of freshet admin link, as the operator of
// the server does.
func TestTheOwnerSignsInByALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, err := exec.CommandContext(t.Context(), binary, "admin", "link", "--data-dir", w.server.DataDir).Output()
	if err != nil {
		t.Fatalf("freshet admin link: %v", err)
	}
	link := strings.TrimSpace(string(out))
	registerSecret("the owner's link", tokenOf(link))
	p := w.person()
	if status, location := p.submit(link, "/oauth/link", map[string]string{"token": tokenOf(link)}); status != 303 ||
		location != "/console/" {
		t.Fatalf("link: got %d to %q, want 303 to the console", status, location)
	}
	got := p.console()
	if me := w.do(call{path: "/oauth/userinfo", as: got.Access}).want(200); me.at("system_administrator") != true {
		t.Errorf("userinfo: got %s, want the system administrator", me.body)
	}
	if status, _, _ := w.person().open(link); status != http.StatusGone {
		t.Errorf("second use of the link: got %d, want 410", status)
	}
}

// TestAttackTakeOverAUser lets an account that may manage users try to take over a user with
// more permissions: by an invitation, by another e-mail address, by creating the user that a
// binding names.
func TestAttackTakeOverAUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory := w.user("mallory", false)
	w.post("roles", role("keeper", "cloud.users.create", "cloud.users.describe", "cloud.users.update",
		"cloud.users.delete", "cloud.users.list")).want(201)
	w.post("rolebindings", object("mallory", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "cloud.vendor.io", "kind": "Role", "name": "keeper"},
		"subjects": []any{map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ServiceAccount", "name": "mallory"}},
	})).want(201)
	grant := func(user, role string) {
		w.post("rolebindings", object(user, map[string]any{
			"roleRef":  map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"apiGroup": "cloud.vendor.io", "kind": "User", "name": user}},
		})).want(201)
	}
	for _, name := range []string{"boss", "plain"} {
		w.post("users", object(name, map[string]any{"email": name + "@example.org"})).want(201)
	}
	grant("boss", "org-admin")
	grant("reader", "org-readonly") // user reader does not exist yet
	attempts, successes := 0, 0
	for name, c := range map[string]call{
		"invite":          {method: http.MethodPost, path: "users/boss/invite"},
		"invite, dry run": {method: http.MethodPost, path: "users/boss/invite?dryRun=All"},
		"another address": {
			method: http.MethodPatch, path: "users/boss",
			body: map[string]any{"spec": map[string]any{"email": "mallory@example.org"}},
			kind: "application/merge-patch+json",
		},
		"replace": {
			method: http.MethodPut, path: "users/boss",
			body: object("boss", map[string]any{"email": "mallory@example.org"}),
		},
		"the user of a binding": {
			method: http.MethodPost, path: "users",
			body: object("reader", map[string]any{"email": "mallory@example.org"}),
		},
		"apply": {
			method: http.MethodPatch, path: "users/reader?fieldManager=m",
			body: `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User","metadata":{"name":"reader"},` +
				`"spec":{"email":"mallory@example.org"}}`,
			kind: "application/apply-patch+yaml",
		},
		"another organization's": {method: http.MethodPost, path: api + "/namespaces/default/users/boss/invite"},
		"nobody's token":         {method: http.MethodPost, path: "users/boss/invite", as: "-"},
	} {
		if c.as == "" {
			c.as = mallory
		}
		attempts++
		if r := w.do(c); r.status != http.StatusForbidden && r.status != http.StatusUnauthorized {
			successes++
			t.Errorf("%s: got %d %.200s, want 403", name, r.status, r.body)
		}
	}
	// Allowed for mallory: users without permissions, and changes that do not affect the user's identity.
	w.do(call{method: http.MethodPost, path: "users/plain/invite", as: mallory, secret: true}).want(201)
	w.do(call{
		method: http.MethodPost, path: "users", as: mallory,
		body: object("new", map[string]any{"email": "new@example.org"}),
	}).want(201)
	w.do(call{
		method: http.MethodPatch, path: "users/boss", as: mallory, kind: "application/merge-patch+json",
		body: map[string]any{"spec": map[string]any{"name": map[string]any{"first": "Big", "last": "Boss"}}},
	}).want(200)
	// A deleted user of a binding cannot be created again with another address.
	w.do(call{method: http.MethodDelete, path: "users/boss", as: mallory}).want(200)
	attempts++
	if r := w.do(call{
		method: http.MethodPost, path: "users", as: mallory,
		body: object("boss", map[string]any{"email": "mallory@example.org"}),
	}); r.status != http.StatusForbidden {
		successes++
		t.Errorf("recreating user boss: got %d, want 403", r.status)
	}
	// A user whose name resembles that of an account gets nothing of the account.
	ci := w.invited("ci@"+w.org, "ci@example.org")
	w.account("ci", true)
	got := ci.console()
	attempts++
	if me := w.do(call{path: "/oauth/userinfo", as: got.Access}).want(200); me.at("administrator") != false ||
		!strings.HasPrefix(me.text("principal"), "user:ci%40") || w.onResources(got.Access) != 403 {
		successes++
		t.Errorf("user named like an account: got %s, want no permissions of the account", me.body)
	}
	tally.Attack(t, "take over a user with more permissions", attempts, successes)
}
