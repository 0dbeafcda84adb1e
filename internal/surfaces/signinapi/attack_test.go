package signinapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"freshet/internal/identity/signin/signintest"
	"freshet/internal/surfaces/signinapi"
	"freshet/internal/surfaces/throttle"
	"freshet/test/tally"
)

// TestAttackOpenRedirect tries to redirect users to other sites after they sign in.
func TestAttackOpenRedirect(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *signinapi.Options) { o.Limits = unlimited() })
	w.user("ann")
	b := w.browser()
	b.signIn("ann", signintest.Password)
	attempts, successes := 0, 0
	home := w.server.URL
	for _, redirect := range []string{
		"https://evil.example/", "https://evil.example/console/", home + "/console", home + "/console/x",
		home + "/console/?x=1", home + "/console/#x",
		home + "/console/../oauth/signin", home + "/console/%2e%2e/", home + ".evil.example/console/",
		home + "@evil.example/console/",
		strings.Replace(home, "http:", "https:", 1) + "/console/",
		strings.Replace(home, "127.0.0.1", "127.0.0.1.evil.example", 1) + "/console/",
		"//evil.example/console/", "javascript:alert(1)", "data:text/html,x", "/console/", "",
		home + "\\@evil.example/console/", strings.ToUpper(home) + "/console/",
	} {
		attempts++
		if a := b.get(w.authorize("redirect_uri", redirect)); a.status != 400 || a.location != "" {
			successes++
			t.Errorf("redirect_uri %s: got %d to %q, want 400 without a redirect", redirect, a.status, a.location)
		}
	}
	for _, next := range []string{
		"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/oauth/../../evil",
		"/oauth/authorize/../../x", "/console/../x",
		"/oauth/signin?next=//evil.example", "javascript:alert(1)", "/%2f/evil.example", "/oauth/authorize%2f..%2f",
		"http:/oauth/device", " //evil.example",
		"/oauth/device\r\nLocation: //evil.example", "//evil.example/oauth/device", "/oauth/callback",
	} {
		attempts++
		fresh := w.browser()
		fresh.get("/oauth/signin")
		a := fresh.post("/oauth/signin", "organization", "acme", "name", "ann", "password",
			signintest.Password, "next", next)
		to, err := url.Parse(a.location)
		if a.status != 303 || err != nil || to.Host != "" || to.Scheme != "" ||
			(to.Path != "/console/" && to.Path != "/oauth/device") {
			successes++
			t.Errorf("next %q: got %d to %q, want a page of this server", next, a.status, a.location)
		}
		if a := b.get("/oauth/signin?next=" + url.QueryEscape(next)); strings.Contains(a.location, "evil") &&
			!strings.HasPrefix(a.location, "/oauth/device?") {
			successes++
			t.Errorf("next %q, signed in: got a redirect to %q", next, a.location)
		}
	}
	tally.Attack(t, "open redirects after signing in", attempts, successes)
}

// TestAttackDowngrade requests codes without PKCE, which any party that sees them could
// use.
func TestAttackDowngrade(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *signinapi.Options) { o.Limits = unlimited() })
	w.user("ann")
	b := w.browser()
	b.signIn("ann", signintest.Password)
	attempts, successes := 0, 0
	for _, change := range [][]string{
		{"code_challenge_method", "plain"},
		{"code_challenge_method", "-"},
		{"code_challenge", "-"},
		{"code_challenge", "-", "code_challenge_method", "-"},
		{"code_challenge", "too-short"},
		{"code_challenge", challenge + "="},
		{"response_type", "token"},
		{"response_type", "code token"},
		{"response_type", "id_token"},
		{"response_type", "-"},
		{"response_mode", "fragment"},
		{"response_mode", "form_post"},
		{"request", "eyJhbGciOiJub25lIn0.e30."},
		{"request_uri", "https://evil.example"},
	} {
		attempts++
		a := b.get(w.authorize(change...))
		to, err := url.Parse(a.location)
		if err != nil || a.status != 303 || to.Query().Get("error") == "" || to.Query().Has("code") ||
			strings.Contains(a.location, "#") || to.Query().Get("state") != "s t" {
			successes++
			t.Errorf("%v: got %d to %s, want an error", change, a.status, a.location)
		}
	}
	for _, change := range [][]string{{"client_id", "freshet-cli"}, {"client_id", "evil"}, {"client_id", "-"}} {
		attempts++
		if a := b.get(w.authorize(change...)); a.status != 400 || a.location != "" {
			successes++
			t.Errorf("%v: got %d to %s, want 400 without a redirect", change, a.status, a.location)
		}
	}
	attempts++
	if a := b.get(w.authorize() + "&redirect_uri=https://evil.example/"); a.status != 400 {
		successes++
		t.Errorf("two redirect URIs: got %d to %s, want 400", a.status, a.location)
	}
	tally.Attack(t, "authorization codes without PKCE", attempts, successes)
}

// TestAttackForgedForms sends forms as other sites can: without a CSRF token, with the
// token of another browser, with a guess, and from another origin.
func TestAttackForgedForms(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *signinapi.Options) { o.Limits = unlimited() })
	w.user("ann")
	w.user("mallory")
	link, _, err := w.SignIn.Links.AdminLink(t.Context(), week)
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.SignIn.Devices.BeginDevice(t.Context(), "freshet-cli", "192.0.2.66")
	if err != nil {
		t.Fatal(err)
	}
	victim, attacker := w.browser(), w.browser()
	victim.signIn("ann", signintest.Password)
	attacker.signIn("mallory", signintest.Password)
	victim.get("/oauth/account")
	attacker.get("/oauth/account")
	before := victim.session()
	attempts, successes := 0, 0
	forms := map[string]url.Values{
		"/oauth/signin":  {"organization": {"acme"}, "name": {"mallory"}, "password": {signintest.Password}},
		"/oauth/device":  {"user_code": {d.UserCode}, "decision": {"approve"}},
		"/oauth/signout": {},
		"/oauth/link":    {"token": {link.Reveal()}},
		"/oauth/invite":  {"token": {"x"}, "password": {"xxxxxxxxxxxxx"}, "repeated": {"xxxxxxxxxxxxx"}},
		"/oauth/choose":  {"token": {"x"}, "uid": {"x"}},
	}
	for path, form := range forms {
		for name, change := range map[string]func(*http.Request, url.Values){
			"no token":          func(_ *http.Request, f url.Values) { f.Del("proof") },
			"another browser's": func(_ *http.Request, f url.Values) { f.Set("proof", attacker.csrfToken) },
			"a guess": func(_ *http.Request, f url.Values) {
				f.Set("proof", strings.Repeat("a", len(victim.csrfToken)))
			},
			"another origin": func(r *http.Request, f url.Values) {
				r.Header.Set("Origin", "https://evil.example")
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			},
			"another origin, old": func(r *http.Request, f url.Values) {
				r.Header.Set("Origin", "https://evil.example")
				r.Header.Del("Sec-Fetch-Site")
			},
			"another host of the same site": func(r *http.Request, f url.Values) {
				r.Header.Set("Sec-Fetch-Site", "same-site")
				r.Header.Set("Origin", "https://x.stream.example")
			},
		} {
			f := url.Values{"proof": {victim.csrfToken}}
			for k, v := range form {
				f[k] = v
			}
			probe := victim.request(http.MethodPost, path, f)
			change(probe, f)
			r := victim.request(http.MethodPost, path, f)
			r.Header = probe.Header
			attempts++
			if a := victim.do(r); a.status != 403 || victim.session() != before {
				successes++
				t.Errorf("%s with %s: got %d, want 403 and no change", path, name, a.status)
			}
		}
	}
	if _, err := w.SignIn.Devices.DeviceOf(t.Context(), d.UserCode); err != nil {
		successes++
		t.Errorf("device: got %v, want it still waiting", err)
	}
	if err := w.SignIn.Links.CheckLink(t.Context(), link.Reveal()); err != nil {
		successes++
		t.Errorf("link: got %v, want it unused", err)
	}
	tally.Attack(t, "cross-site request forgery", attempts, successes)
}

// TestAttackSessionFixation sets cookies in a browser before a user signs in there, and
// uses them afterwards.
func TestAttackSessionFixation(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.user("ann")
	w.user("mallory")
	attacker, victim := w.browser(), w.browser()
	attacker.signIn("mallory", signintest.Password)
	planted := attacker.session()
	at, err := url.Parse(w.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	attempts, successes := 0, 0
	for _, value := range []string{
		planted, "xxxxxxxxxxxxxxxxxxxxxx.yyy", "../people/x.y",
		strings.Repeat("a", 22) + "." + strings.Repeat("b", 43),
	} {
		victim.http.Jar.SetCookies(at, []*http.Cookie{{Name: "freshet-session", Value: value, Path: "/oauth"}})
		victim.get("/oauth/signin?again=true")
		a := victim.post("/oauth/signin", "organization", "acme", "name", "ann", "password", signintest.Password)
		attempts += 2
		if a.status != 303 || victim.session() == value {
			successes++
			t.Errorf("signing in: got %d and cookie %s, want a new one", a.status, victim.session())
		}
		if got := attacker.get("/oauth/account"); strings.Contains(got.body, "ann@") {
			successes++
			t.Error("the attacker's cookie became the session of the victim")
		}
	}
	tally.Attack(t, "session fixation", attempts, successes)
}

var requestID = regexp.MustCompile(`<code>[A-Z0-9]{16}</code>|value="[^"]*"`)

// TestAttackEnumeration compares the responses for users who exist and who do not.
func TestAttackEnumeration(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *signinapi.Options) { o.Limits = unlimited() })
	w.user("ann")
	w.User("acme", "bob", "bob@example.com")
	attempts, successes := 0, 0
	seen := ""
	for _, userName := range []string{"ann", "ann@example.com", "bob", "nobody", "nobody@example.com"} {
		a := w.browser().signIn(userName, "a wrong password")
		text := fmt.Sprint(a.status, requestID.ReplaceAllString(a.body, ""))
		if seen == "" {
			seen = text
		}
		attempts++
		if a.status != 401 || text != seen {
			successes++
			t.Errorf("%s: got %s, want 401 and the same response as for the first", userName, text)
		}
	}
	if w.counts["password failure"] != attempts || !w.recorded("signin", 401) {
		t.Errorf("got counts %v, want every failure counted and recorded", w.counts)
	}
	tally.Attack(t, "user enumeration by the responses", attempts, successes)
}

// TestAttackBruteForce guesses passwords from one address and from many, and checks that
// the owner is not locked out.
func TestAttackBruteForce(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *signinapi.Options) {
		o.Limits.Account = throttle.Rate{PerSecond: 0.0001, Burst: 5}
		o.Limits.Guesses = throttle.Rate{PerSecond: 0.0001, Burst: 20}
		o.Limits.Address = throttle.Rate{PerSecond: 0.0001, Burst: 8}
	})
	w.user("ann")
	from := func(address, name, password string) int {
		b := w.browser()
		b.get("/oauth/signin")
		r := b.request(http.MethodPost, "/oauth/signin",
			url.Values{"proof": {b.csrfToken}, "organization": {"acme"}, "name": {name}, "password": {password}})
		r.Header.Set(addressHeader, address)
		a := b.do(r)
		if (a.status == 429) != (a.header.Get("Retry-After") != "") {
			t.Errorf("got %d with Retry-After %q, want it for 429 only", a.status, a.header.Get("Retry-After"))
		}
		return a.status
	}
	if got := from("192.0.2.1", "ann", signintest.Password); got != 303 {
		t.Fatalf("owner: got %d, want 303", got)
	}
	tried, attempts := 0, 0
	count := func(address, name string, n int) (let int) {
		for i := range n {
			attempts++
			if from(address, name, fmt.Sprintf("guess number %d", i)) == 401 {
				let++
			}
		}
		return let
	}
	if let := count("192.0.2.66", "ann", 12); let > 5 {
		t.Errorf("one address had %d guesses, want at most 5", let)
	} else {
		tried += let
	}
	// With changing addresses, the limit of the account applies. It also applies to an
	// account that does not exist.
	for _, name := range []string{"ann", "nobody"} {
		let := 0
		for i := range 12 {
			let += count(fmt.Sprintf("198.51.100.%d", i), name, 3)
		}
		if let > 20 {
			t.Errorf("many addresses had %d guesses at %s, want at most 20", let, name)
		}
		tried += let
	}
	if got := from("192.0.2.1", "ann", signintest.Password); got != 303 {
		t.Errorf("owner at the usual address: got %d, want 303", got)
	}
	if let := count("203.0.113.9", "a-new-name-every-time", 4) + count("203.0.113.9", "another", 4) +
		count("203.0.113.9", "third", 4); let > 8 {
		t.Errorf("one address had %d guesses at many users, want at most 8", let)
	}
	successes := 0
	if w.counts["password success"] != 2 {
		successes = w.counts["password success"] - 2
	}
	tally.Attack(t, "guessing passwords", attempts, successes)
}

// unlimited returns no limits, for tests with many attempts.
func unlimited() signinapi.Limits {
	none := throttle.Rate{PerSecond: -1}
	return signinapi.Limits{Address: none, Account: none, Guesses: none, DeviceCodes: none}
}
