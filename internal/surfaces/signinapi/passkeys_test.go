package signinapi_test

import (
	"encoding/base64"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"freshet/internal/identity/passkey/passkeytest"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
	"freshet/internal/surfaces/signinapi"
	"freshet/test/tally"
)

// newNamedHarness is a server that browsers open at a host name, so that they support
// passkeys.
func newNamedHarness(t testing.TB) *harness {
	t.Helper()
	w := newHarness(t, func(o *signinapi.Options) {
		o.Limits = unlimited()
		o.Origins = append(o.Origins, strings.Replace(o.Origins[0], "127.0.0.1", "localhost", 1))
	})
	w.server.URL = strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1)
	return w
}

var (
	options = regexp.MustCompile(`data-options="([^"]*)"`)
	sealed  = regexp.MustCompile(`name="asked" value="([^"]*)"`)
)

// question returns the WebAuthn options and the sealed question of a page.
func question(t testing.TB, a response) (asks, asked string) {
	t.Helper()
	o, s := options.FindStringSubmatch(a.body), sealed.FindStringSubmatch(a.body)
	if o == nil || s == nil {
		t.Fatalf("page has no passkey request: %d %s", a.status, a.body)
	}
	return html.UnescapeString(o[1]), html.UnescapeString(s[1])
}

func (w *harness) device() *passkeytest.Device {
	return passkeytest.New(w.t, w.server.URL, "localhost")
}

// invited registers the passkey of a device with an invitation.
func (b *browser) invited(subject signin.Subject, d *passkeytest.Device, label string) response {
	b.t.Helper()
	token, _, err := b.SignIn.Links.Invite(b.t.Context(), subject.Organization, subject.User, "test", week)
	if err != nil {
		b.t.Fatal(err)
	}
	asks, asked := question(b.t, b.get("/oauth/invite?token="+token.Reveal()))
	return b.post("/oauth/invite/passkey", "token", token.Reveal(), "asked", asked, "credential",
		d.CreateResponse(asks),
		"label", label)
}

// use signs in with a passkey.
func (b *browser) use(d *passkeytest.Device, fields ...string) response {
	b.t.Helper()
	asks, asked := question(b.t, b.get("/oauth/signin"))
	return b.post("/oauth/signin/passkey",
		append([]string{"asked", asked, "credential", d.SignInResponse(asks)}, fields...)...)
}

func TestPasskey(t *testing.T) {
	t.Parallel()
	w := newNamedHarness(t)
	subject := w.User("acme", "ann", "ann@example.com")
	laptop, phone := w.device(), w.device()
	b := w.browser()
	if a := b.invited(subject, laptop, "Laptop"); a.status != http.StatusSeeOther || a.location != "/console/" ||
		b.session() == "" {
		t.Fatalf("setting a passkey: got %d to %q, want the console\n%s", a.status, a.location, a.body)
	}
	a := b.get("/oauth/account")
	if !strings.Contains(a.body, "Laptop") {
		t.Errorf("account page does not show the passkey: %s", a.body)
	}
	policy := a.header.Get("Content-Security-Policy")
	nonce := regexp.MustCompile(`script-src 'nonce-([^']+)'`).FindStringSubmatch(policy)
	if nonce == nil || !strings.Contains(a.body, `<script nonce="`+html.EscapeString(nonce[1])+`"`) ||
		!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("got Content-Security-Policy %q, want only the script with the nonce of the page", policy)
	}
	asks, asked := question(t, a)
	if a := b.post("/oauth/account/passkeys", "asked", asked, "credential", phone.CreateResponse(asks), "label",
		"Phone"); a.status != http.StatusSeeOther {
		t.Fatalf("adding a passkey: got %d %s, want 303", a.status, a.body)
	}
	for name, d := range map[string]*passkeytest.Device{"laptop": laptop, "phone": phone} {
		for _, userName := range []string{"", "ann", "ANN@example.com"} {
			fresh := w.browser()
			if a := fresh.use(d, "organization", "acme", "name", userName, "next",
				"/oauth/account"); a.status != http.StatusSeeOther ||
				!strings.HasPrefix(a.location, "/oauth/account") || fresh.session() == "" {
				t.Errorf("signing in with the %s as %q: got %d to %q, want the account page", name, userName, a.status,
					a.location)
			}
		}
	}
	if !w.recorded("create", http.StatusOK) || w.counts["passkey success"] != 6 {
		t.Errorf("got counts %v, want six sign-ins and a record of the new passkey", w.counts)
	}
	b.remove(t, laptop, http.StatusSeeOther)
	if a := w.browser().use(laptop); a.status != http.StatusUnauthorized {
		t.Errorf("removed passkey: got %d, want 401", a.status)
	}
	b.remove(t, phone, http.StatusConflict) // the last way to sign in cannot be removed
	if a := w.browser().use(phone); a.status != http.StatusSeeOther {
		t.Errorf("last passkey: got %d, want 303", a.status)
	}
	// Deleting the user ends all sessions.
	in := w.browser()
	in.use(phone)
	w.Directory.DeleteUser("acme", "ann", subject.UID)
	if a := in.get("/oauth/account"); a.status != http.StatusSeeOther ||
		!strings.HasPrefix(a.location, "/oauth/signin") {
		t.Errorf("after the user was deleted: got %d to %q, want the sign-in form", a.status, a.location)
	}
	if a := w.browser().use(phone); a.status != http.StatusUnauthorized {
		t.Errorf("passkey of a deleted user: got %d, want 401", a.status)
	}
}

func (b *browser) remove(t *testing.T, d *passkeytest.Device, want int) {
	t.Helper()
	b.get("/oauth/account")
	if a := b.post("/oauth/account/passkeys/remove", "passkey", encodeID(d)); a.status != want {
		t.Errorf("removing a passkey: got %d, want %d\n%s", a.status, want, a.body)
	}
}

// TestNoPasskeysAtNumericAddresses: at a numeric address, where browsers do not support passkeys,
// the pages offer none and link to localhost.
func TestNoPasskeysAtNumericAddresses(t *testing.T) {
	t.Parallel()
	w := newNamedHarness(t)
	w.server.URL = strings.Replace(w.server.URL, "localhost", "127.0.0.1", 1)
	subject := w.user("ann")
	b := w.browser()
	a := b.get("/oauth/signin")
	if strings.Contains(a.body, "passkey") || strings.Contains(a.body, "<script") ||
		strings.Contains(a.header.Get("Content-Security-Policy"), "script-src") {
		t.Errorf("page at a numeric address offers passkeys: %s", a.body)
	}
	if a := b.post("/oauth/signin/passkey", "asked", "x", "credential", "{}"); a.status != http.StatusBadRequest ||
		!strings.Contains(a.body, "host name") {
		t.Errorf("submitting a passkey at a numeric address: got %d %s, want 400", a.status, a.body)
	}
	token, _, err := w.SignIn.Links.Invite(t.Context(), subject.Organization, subject.User, "test", week)
	if err != nil {
		t.Fatal(err)
	}
	if a := b.get("/oauth/invite?token=" + token.Reveal()); !strings.Contains(a.body, `href="http://localhost:`) ||
		!strings.Contains(a.body, "This replaces your existing password") {
		t.Errorf("invitation page has no link to localhost or no warning about the replacement: %s", a.body)
	}
}

// TestAttackPasskey tries to sign in with invalid passkey responses.
func TestAttackPasskey(t *testing.T) {
	t.Parallel()
	w := newNamedHarness(t)
	ann, eve := w.User("acme", "ann", "ann@example.com"), w.User("acme", "eve", "eve@example.com")
	hers, mine := w.device(), w.device()
	w.browser().invited(ann, hers, "hers")
	w.browser().invited(eve, mine, "mine")
	attempts, successes := 0, 0
	try := func(name string, b *browser, a response) {
		t.Helper()
		attempts++
		if a.status < 400 || a.status >= 500 || b.session() != "" {
			successes++
			t.Errorf("%s: got %d to %q, want a 4xx status and no session", name, a.status, a.location)
		}
	}
	with := func(name string, change func(*passkeytest.Device), fields ...string) {
		t.Helper()
		d := *hers
		change(&d)
		b := w.browser()
		try(name, b, b.use(&d, fields...))
	}
	with("another origin", func(d *passkeytest.Device) { d.Origin = "https://evil.example" })
	with("another port", func(d *passkeytest.Device) { d.Origin = "http://localhost:1" })
	with("another scheme", func(d *passkeytest.Device) { d.Origin = strings.Replace(d.Origin, "http:", "https:", 1) })
	with("the number instead of the name",
		func(d *passkeytest.Device) { d.Origin = strings.Replace(d.Origin, "localhost", "127.0.0.1", 1) })
	with("another host", func(d *passkeytest.Device) { d.Host = "evil.example" })
	with("no user presence", func(d *passkeytest.Device) { d.Flags = passkeytest.Verified })
	with("no user verification", func(d *passkeytest.Device) { d.Flags = passkeytest.Present })
	with("a counter that goes back", func(d *passkeytest.Device) { d.Count = 1 })
	with("a counter that stopped", func(d *passkeytest.Device) { d.Count = 0 })
	with("as another user", func(*passkeytest.Device) {}, "organization", "acme", "name", "eve")
	with("as an unknown user", func(*passkeytest.Device) {}, "organization", "acme", "name", "nobody")
	with("as the same name in another organization", func(*passkeytest.Device) {}, "organization", "globex",
		"name", "ann")
	with("no owner", func(d *passkeytest.Device) { d.Owner = nil })
	with("an owner that is a path", func(d *passkeytest.Device) { d.Owner = []byte("../people/" + ann.UID) })
	with("an unknown owner", func(d *passkeytest.Device) { d.Owner = []byte("uid-x") })
	with("an unknown passkey", func(d *passkeytest.Device) { d.ID = []byte("unknown") })

	// the attacker's key with the victim's owner or passkey id
	stolen := *mine
	stolen.Owner = []byte(ann.UID)
	b := w.browser()
	try("my passkey with her as the owner", b, b.use(&stolen))
	stolen.ID = hers.ID
	b = w.browser()
	try("my key under her passkey's id", b, b.use(&stolen))

	// a reused response: in another browser, in the same browser, and for another question
	hers.Count += 10
	b = w.browser()
	asks, asked := question(t, b.get("/oauth/signin"))
	said := hers.SignInResponse(asks)
	page := b.csrfToken
	if a := b.post("/oauth/signin/passkey", "asked", asked, "credential", said); a.status != http.StatusSeeOther {
		t.Fatalf("valid response: got %d %s, want 303", a.status, a.body)
	}
	other := w.browser()
	other.get("/oauth/signin")
	try("a used response in another browser", other,
		other.post("/oauth/signin/passkey", "asked", asked, "credential", said))
	b = w.browser()
	asks, asked = question(t, b.get("/oauth/signin"))
	hers.Count = 0 // a device without a signature counter
	noCount := w.User("acme", "zoe", "zoe@example.com")
	silent := w.device()
	silent.Count = 0
	w.browser().invited(noCount, silent, "silent")
	said = silent.SignInResponse(asks)
	if a := b.post("/oauth/signin/passkey", "asked", asked, "credential", said); a.status != http.StatusSeeOther {
		t.Fatalf("valid response: got %d %s, want 303", a.status, a.body)
	}
	b.get("/oauth/signout")
	b.post("/oauth/signout")
	b.get("/oauth/signin")
	try("a used response in the same browser", b, b.post("/oauth/signin/passkey", "asked", asked, "credential", said))
	_, fresh := question(t, b.get("/oauth/signin"))
	try("a response to another question", b, b.post("/oauth/signin/passkey", "asked", fresh, "credential", said))
	asks, _ = question(t, b.get("/oauth/signin"))
	b.csrfToken = page
	try("a form of another browser", b,
		b.post("/oauth/signin/passkey", "asked", fresh, "credential", silent.SignInResponse(asks)))
	for _, broken := range []string{"", "{}", "null", "[]", `{"id":"AA"}`, strings.Repeat("x", 10_000)} {
		b = w.browser()
		_, asked := question(t, b.get("/oauth/signin"))
		try("a broken response", b, b.post("/oauth/signin/passkey", "asked", asked, "credential", broken))
		try("a broken question", b, b.post("/oauth/signin/passkey", "asked", broken, "credential", broken))
	}
	tally.Attack(t, "signing in with an invalid passkey response", attempts, successes)
}

// TestAttackOthersPasskeys tries to change the passkeys of other users.
func TestAttackOthersPasskeys(t *testing.T) {
	t.Parallel()
	w := newNamedHarness(t)
	ann, eve := w.User("acme", "ann", "ann@example.com"), w.user("eve")
	hers, mine := w.device(), w.device()
	w.browser().invited(ann, hers, "hers")
	w.browser().invited(ann, hers, "hers again")
	b := w.browser()
	b.signIn("eve", signintest.Password)
	attempts, successes := 0, 0
	try := func(name string, ok bool, a response) {
		t.Helper()
		attempts++
		if !ok {
			successes++
			t.Errorf("%s: got %d %s, want an error", name, a.status, a.body)
		}
	}
	b.get("/oauth/account")
	a := b.post("/oauth/account/passkeys/remove", "passkey", encodeID(hers))
	try("removing hers", a.status == http.StatusNotFound, a)

	// the question of an invitation is bound to its user
	token, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "ann", "test", week)
	if err != nil {
		t.Fatal(err)
	}
	asks, asked := question(t, b.get("/oauth/invite?token="+token.Reveal()))
	a = b.post("/oauth/account/passkeys", "asked", asked, "credential", mine.CreateResponse(asks))
	try("the question of her invitation for my account", a.status == http.StatusForbidden, a)
	asks, asked = question(t, b.get("/oauth/account"))
	a = b.post("/oauth/invite/passkey", "token", token.Reveal(), "asked", asked, "credential",
		mine.CreateResponse(asks))
	try("the question of my account for her invitation", a.status >= 400, a)
	asks, asked = question(t, b.get("/oauth/signin?again=true"))
	a = b.post("/oauth/account/passkeys", "asked", asked, "credential", mine.SignInResponse(asks))
	try("a sign-in response as a new passkey", a.status >= 400, a)

	nobody := w.browser()
	nobody.get("/oauth/signin")
	a = nobody.post("/oauth/account/passkeys", "asked", asked, "credential", "{}")
	try("adding one without a session", a.status == http.StatusUnauthorized, a)
	a = nobody.post("/oauth/account/passkeys/remove", "passkey", encodeID(hers))
	try("removing one without a session", a.status == http.StatusUnauthorized, a)

	mine.Flags = passkeytest.Present
	asks, asked = question(t, b.get("/oauth/account"))
	a = b.post("/oauth/account/passkeys", "asked", asked, "credential", mine.CreateResponse(asks))
	try("a passkey without user verification", a.status == http.StatusBadRequest, a)
	mine.Flags |= passkeytest.Verified
	mine.Origin = "https://evil.example"
	asks, asked = question(t, b.get("/oauth/account"))
	a = b.post("/oauth/account/passkeys", "asked", asked, "credential", mine.CreateResponse(asks))
	try("a passkey made elsewhere", a.status == http.StatusBadRequest, a)
	if ways, err := w.SignIn.People.CredentialsOf(t.Context(), eve); err != nil || len(ways.Passkeys) != 0 {
		t.Errorf("eve has %d passkeys, error %v, want none", len(ways.Passkeys), err)
	}
	if ways, err := w.SignIn.People.CredentialsOf(t.Context(), ann); err != nil || len(ways.Passkeys) != 1 ||
		ways.Passkeys[0].Name != "hers again" {
		t.Errorf("ann has passkeys %v, error %v, want only hers", ways.Passkeys, err)
	}
	tally.Attack(t, "changing the passkeys of another user", attempts, successes)
}

func encodeID(d *passkeytest.Device) string { return base64.RawURLEncoding.EncodeToString(d.ID) }

// TestPasskeysOfAnOldSession: a session older than 15 minutes cannot change passkeys.
func TestPasskeysOfAnOldSession(t *testing.T) {
	t.Parallel()
	w := newNamedHarness(t)
	w.user("ann")
	b, d := w.browser(), w.device()
	b.signIn("ann", signintest.Password)
	asks, asked := question(t, b.get("/oauth/account"))
	id, _, _ := strings.Cut(b.session(), ".")
	record, revision, err := w.Store().Get(t.Context(), "sessions/"+id)
	if err != nil || record == nil {
		t.Fatalf("stored session: got %s, error %v", record, err)
	}
	old := regexp.MustCompile(`"begun":"[^"]*"`).ReplaceAll(record,
		[]byte(`"begun":"`+time.Now().Add(-16*time.Minute).UTC().Format(time.RFC3339)+`"`))
	if _, err := w.Store().Put(t.Context(), "sessions/"+id, old, revision); err != nil {
		t.Fatal(err)
	}
	if a := b.get("/oauth/account"); !strings.Contains(a.body, "Sign in again") ||
		strings.Contains(a.body, "data-passkey") {
		t.Errorf("account page of an old session: got %s, want a link to sign in again and no passkey form", a.body)
	}
	if a := b.post("/oauth/account/passkeys", "asked", asked, "credential",
		d.CreateResponse(asks)); a.status != http.StatusForbidden {
		t.Errorf("adding a passkey in an old session: got %d, want 403", a.status)
	}
}
