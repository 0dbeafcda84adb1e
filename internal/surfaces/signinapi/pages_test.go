package signinapi_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
	"freshet/internal/surfaces/signinapi"
)

func TestPasswordLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.user("ann")
	b := w.browser()
	a := b.get(w.authorize())
	if a.status != 303 || !strings.HasPrefix(a.location, "/oauth/signin?next=") {
		t.Fatalf("without a session: got %d to %s, want the sign-in form", a.status, a.location)
	}
	if a = b.get(a.location); a.status != 200 || !strings.Contains(a.body, `value="acme"`) {
		t.Fatalf("form: got %d %s, want 200 with the organization", a.status, a.body)
	}
	next := strings.TrimPrefix(w.authorize(), "")
	a = b.post("/oauth/signin", "organization", "acme", "name", "ANN@example.com", "password",
		signintest.Password, "next", next)
	if a.status != 303 || !strings.HasPrefix(a.location, "/oauth/authorize?") {
		t.Fatalf("signing in: got %d to %s, want the authorization endpoint", a.status, a.location)
	}
	a = b.get(a.location)
	back, err := url.Parse(a.location)
	if err != nil || a.status != 303 || !strings.HasPrefix(a.location, w.server.URL+"/console/?") {
		t.Fatalf("authorized: got %d to %s, want the console", a.status, a.location)
	}
	if q := back.Query(); q.Get("code") == "" || q.Get("state") != "s t" || q.Get("iss") != "https://issuer" {
		t.Errorf("redirect to the console: got query %v, want code, state and issuer", q)
	}
	if a = b.get("/oauth/account"); a.status != 200 || !strings.Contains(a.body, "ann@example.com") {
		t.Errorf("account page: got %d %s, want 200 with the user", a.status, a.body)
	}
	if a = b.get("/oauth/signout"); a.status != 200 {
		t.Errorf("sign-out page: got %d, want 200", a.status)
	}
	if a = b.post("/oauth/signout"); a.status != 200 || b.session() != "" {
		t.Errorf("signing out: got %d and cookie %q, want 200 and none", a.status, b.session())
	}
	if a = b.get(w.authorize("prompt", "none")); !strings.Contains(a.location, "error=login_required") {
		t.Errorf("signed out: got %s, want login_required", a.location)
	}
	if !w.recorded("signin", 200) || !w.recorded("signout", 200) || w.counts["password success"] != 1 {
		t.Errorf("got records %+v and counts %v, want sign-in and sign-out", w.records, w.counts)
	}
}

func TestPromptShowsTheFormAgain(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.user("ann")
	b := w.browser()
	b.signIn("ann", signintest.Password)
	a := b.get(w.authorize("prompt", "login"))
	if a.status != 303 || !strings.Contains(a.location, "again=true") {
		t.Fatalf("prompt=login: got %d to %s, want the form", a.status, a.location)
	}
	if a = b.get(a.location); a.status != 200 || strings.Contains(a.body, "prompt=login") {
		t.Errorf("form: got %d, want 200 without prompt=login, which would never end", a.status)
	}
}

func TestInvitationPage(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.User("acme", "ann", "ann@example.com")
	token, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "ann", "boss", week)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(signinapi.Links{Base: w.server.URL}.InviteURL(token.Reveal()), w.server.URL)
	b := w.browser()
	for range 3 { // GET does not use up the invitation
		if a := b.get(path); a.status != 200 || !strings.Contains(a.body, "ann@example.com") {
			t.Fatalf("invitation page: got %d %s, want 200 with the e-mail address", a.status, a.body)
		}
	}
	if a := b.post("/oauth/invite", "token", token.Reveal(), "password", signintest.Password, "repeated",
		"another"); a.status != 422 {
		t.Errorf("two different passwords: got %d, want 422", a.status)
	}
	if a := b.post("/oauth/invite", "token", token.Reveal(), "password", "short", "repeated",
		"short"); a.status != 422 || !strings.Contains(a.body, "too short") {
		t.Errorf("short password: got %d %s, want 422 with the reason", a.status, a.body)
	}
	a := b.post("/oauth/invite", "token", token.Reveal(), "password", signintest.Password, "repeated",
		signintest.Password)
	if a.status != 303 || a.location != "/console/" || b.session() == "" {
		t.Fatalf("valid password: got %d to %s, want the console", a.status, a.location)
	}
	if a := b.get(path); a.status != 410 || !strings.Contains(a.body, "not valid any more") {
		t.Errorf("used link: got %d, want 410", a.status)
	}
}

func TestLinkPage(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	token, _, err := w.SignIn.Links.AdminLink(t.Context(), week)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(signinapi.Links{Base: w.server.URL}.LinkURL(token.Reveal()), w.server.URL)
	b := w.browser()
	if a := b.get(path); a.status != 200 || b.session() != "" {
		t.Fatalf("link page: got %d and cookie %q, want 200 and no session", a.status, b.session())
	}
	if a := b.post("/oauth/link", "token", token.Reveal()); a.status != 303 || b.session() == "" {
		t.Fatalf("submitting the form: got %d, want 303 and a session", a.status)
	}
	if a := b.get("/oauth/account"); !strings.Contains(a.body, "System administrator") {
		t.Errorf("account page: got %s, want the system administrator", a.body)
	}
	if a := w.browser().get(path); a.status != 410 {
		t.Errorf("used link: got %d, want 410", a.status)
	}
}

func TestDevicePage(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.user("ann")
	d, err := w.SignIn.Devices.BeginDevice(t.Context(), signin.ClientCLI, "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	a := b.get("/oauth/device?user_code=" + d.UserCode)
	if a.status != 303 || !strings.HasPrefix(a.location, "/oauth/signin?next=") {
		t.Fatalf("without a session: got %d to %s, want the sign-in form", a.status, a.location)
	}
	at, err := url.Parse(a.location)
	if err != nil {
		t.Fatal(err)
	}
	b.get(a.location)
	a = b.post("/oauth/signin", "organization", "acme", "name", "ann", "password", signintest.Password, "next",
		at.Query().Get("next"))
	if a.location != "/oauth/device?user_code="+d.UserCode {
		t.Fatalf("signed in: got a redirect to %s, want the device page", a.location)
	}
	if a = b.get(a.location); a.status != 200 || !strings.Contains(a.body, d.UserCode) ||
		!strings.Contains(a.body, "192.0.2.7") {
		t.Fatalf("device page: got %d %s, want the code and the device's address", a.status, a.body)
	}
	if a = b.post("/oauth/device", "user_code", d.UserCode, "decision", "approve"); a.status != 200 ||
		!strings.Contains(a.body, "signed in") {
		t.Fatalf("approving: got %d %s, want 200", a.status, a.body)
	}
	if _, err := w.SignIn.Devices.PollDevice(t.Context(), d.Code.Reveal(), signin.ClientCLI); err != nil {
		t.Errorf("polling for the device: got %v, want a grant", err)
	}
	b.get("/oauth/device")
	if a = b.post("/oauth/device", "user_code", "BCDF-GHJK", "decision", "approve"); a.status != 404 {
		t.Errorf("unknown code: got %d, want 404", a.status)
	}
	if !w.recorded("approve", 200) {
		t.Error("audit trail has no record of the approval")
	}
}

func TestEveryResponseHasSecurityHeaders(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	b := w.browser()
	for _, path := range signinapi.Patterns() {
		a := b.get(path)
		if kind := map[string]string{".css": "text/css", ".js": "text/javascript"}[filepath.Ext(path)]; kind != "" {
			if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), kind) {
				t.Errorf("%s: got %d %s, want %s", path, a.status, a.header.Get("Content-Type"), kind)
			}
			continue
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			a.header.Get("Cache-Control") != "no-store" || a.header.Get("Referrer-Policy") != "no-referrer" ||
			a.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: got headers %v, want all security headers", path, a.header)
		}
		if strings.Contains(a.body, "<script") || strings.Contains(a.body, "style=") {
			t.Errorf("%s: page has an inline script or style", path)
		}
		if a.status >= 500 {
			t.Errorf("%s: got %d, want less than 500", path, a.status)
		}
	}
	for method, status := range map[string]int{http.MethodDelete: 405, http.MethodPut: 405, http.MethodHead: 200} {
		if a := b.do(b.request(method, "/oauth/signin", nil)); a.status != status {
			t.Errorf("%s: got %d, want %d", method, a.status, status)
		}
	}
}

func TestCookiesOverTLS(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *signinapi.Options) { o.Origins = append(o.Origins, "https://stream.example") })
	b := w.browser()
	r := b.request(http.MethodGet, "/oauth/signin", nil)
	r.Host = "stream.example" // behind a proxy that terminates TLS
	a := b.do(r)
	if c := a.header.Get("Set-Cookie"); !strings.HasPrefix(c, "__Host-freshet-browser=") ||
		!strings.Contains(c, "Secure") || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") {
		t.Errorf("got cookie %q, want the prefix __Host-, Secure, HttpOnly and SameSite=Lax", c)
	}
}
