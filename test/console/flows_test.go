package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// credentials rotates and returns the credentials of an account of acme.
func credentials(t *testing.T, account string) (id, secret string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rotate := func() (int, []byte, error) {
		return call(ctx, server.Token, http.MethodPost, namespaces+"acme/serviceaccounts/"+account+"/rotate",
			object{"spec": object{"overlapSeconds": 86400}})
	}
	status, text, err := rotate()
	for err == nil && status == http.StatusConflict { // a new account has no credentials yet
		<-time.After(50 * time.Millisecond)
		status, text, err = rotate()
	}
	if err != nil || status >= 300 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	var made struct {
		Status struct{ PrivateKeyData []byte }
	}
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	var file struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(made.Status.PrivateKeyData, &file); err != nil {
		t.Fatal(err)
	}
	return file.ID, file.Secret
}

// tokenOf requests a token of a service account.
func tokenOf(t *testing.T, account string) string {
	t.Helper()
	id, secret := credentials(t, account)
	status, text, err := call(t.Context(), "", http.MethodPost, "/oauth/token",
		object{"grant_type": "client_credentials", "client_id": id, "client_secret": secret})
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
	var response struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &response); err != nil {
		t.Fatal(err)
	}
	return response.Token
}

func (b *tab) signIn(id, secret string) {
	b.t.Helper()
	b.click("Service account")
	b.fill("client_id", id)
	b.fill("client_secret", secret)
	b.click("Sign in")
}

func TestSignIn(t *testing.T) {
	id, secret := credentials(t, "platform")
	b := open(t, 1440, "light")
	b.visit("")
	b.shoot("signin-1440-light")
	b.signIn(id, "wrong")
	b.until(`document.querySelector('.callout.bad')`)
	b.signIn(id, secret)
	b.waitText("platform")
	b.until(`location.pathname === '/console/acme/overview'`)
	eval[any](b, `void document.querySelector('.chip').click()`)
	b.waitText("Administrator")
	b.waitText("renewed automatically")
	if kept := eval[string](b, `JSON.stringify([{...localStorage}, {...sessionStorage}])`); strings.Contains(kept,
		secret) || strings.Contains(kept, "freshet.session") {
		t.Errorf("session is stored without being requested: %s", kept)
	}
	for _, sent := range b.sent() {
		if strings.Contains(sent, secret) && !strings.Contains(sent, "/oauth/token") {
			t.Errorf("secret was sent to another endpoint: %s", sent)
		}
	}
	b.click("Sign out")
	b.waitText("Sign in to Freshet")
}

// TestSignInByFile signs in with a dropped credentials file, and keeps the session for the tab on request.
func TestSignInByFile(t *testing.T) {
	id, secret := credentials(t, "platform")
	file := filepath.Join(t.TempDir(), "acme-platform.json")
	text, err := json.Marshal(object{"client_id": id, "client_secret": secret})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, 390, "dark")
	b.visit("acme/keys?q=ci")
	b.shoot("signin-390-dark")
	b.click("Service account")
	b.until(`document.querySelector('.check input')`)
	eval[any](b, `void document.querySelector('.check input').click()`)
	do(b, chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{file}))
	b.waitText("checkout-ci") // the view of the URL
	do(b, chromedp.Reload())
	b.settled()
	b.waitText("checkout-ci")
	b.clean()
}

// TestExpiry checks that a page stays open when its session ends, and works after the next sign-in.
func TestExpiry(t *testing.T) {
	create(t, "acme", "serviceaccounts",
		object{"metadata": object{
			"name":        "fleeting",
			"annotations": object{"annotations.cloud.vendor.io/service-account-role": "admin"},
		}})
	id, secret := credentials(t, "fleeting")
	b := open(t, 1440, "light")
	b.visit("acme/accounts?q=fleet")
	b.signIn(id, secret)
	b.waitText("fleeting")
	b.settled()
	b.until(`document.querySelector('.rows .row')`)
	eval[any](b, `void (window.stays = document.querySelector('#main h1'))`)
	status, text, err := call(t.Context(), server.Token, http.MethodPost,
		namespaces+"acme/serviceaccounts/fleeting/rotate",
		object{"spec": object{"overlapSeconds": 0}})
	if err != nil || status >= 300 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	id, secret = credentials(t, "fleeting")
	b.waitText("Sign in again")
	b.shoot("signin-again-1440-light")
	b.signIn(id, secret)
	b.until(`!document.querySelector('.signin.over')`)
	create(t, "acme", "serviceaccounts", object{"metadata": object{"name": "fleet-later"}})
	b.waitText("fleet-later")
	if !eval[bool](b, `window.stays.isConnected && location.search === '?q=fleet'`) {
		t.Error("page did not keep its state")
	}
}

// TestReadOnlyRole checks that actions without permission are disabled and name the missing
// permission, and that lists without permission do not look empty.
func TestReadOnlyRole(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(tokenOf(t, "reporting"))
	b.visit("acme/clusters")
	b.waitText("Shop, production")
	b.until(button + `('New cluster')?.getAttribute('aria-disabled') === 'true'`)
	if why := eval[string](b, button+`('New cluster').title`); !strings.Contains(why,
		"cloud.messagingclusters.create") {
		t.Errorf("button title is %q, want the missing permission", why)
	}
	b.click("New cluster")
	if eval[bool](b, `!!document.querySelector('dialog[open]')`) {
		t.Error("disabled button opened a dialog")
	}
	b.shoot("readonly-1440-light")
	b.visit("acme/clusters/orders")
	for _, name := range []string{"Edit", "Delete", "Protect"} {
		b.until(fmt.Sprintf(`%s(%q)?.getAttribute('aria-disabled') === 'true'`, button, name))
	}
	b.visit("acme/system?tab=audit")
	b.waitText("You do not have access to the audit log")
	b.waitText("cloud.auditrecords.list")
	b.shoot("denied-1440-light")
	b.visit("acme/accounts/checkout")
	b.waitText("cloud.credentials.describe")
	b.clean()
}

// TestLive checks that lists update automatically.
func TestLive(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/instances")
	create(t, "acme", "messaginginstances", named("appears", object{}))
	b.waitText("appears")
	b.until(`[...document.querySelectorAll('.row')].find(r => r.innerText.includes('appears'))
		?.innerText.includes('Ready')`)
	b.click("appears")
	b.waitText("urn:vendor:messaging:acme:appears")
	b.click("Delete")
	b.until(button + `('Delete').disabled`)
	eval[any](b, `(e => {
		e.value = 'appears'
		e.dispatchEvent(new Event('input', {bubbles: true}))
	})(document.querySelector('dialog[open] input'))`)
	b.click("Delete")
	b.until(`location.pathname === '/console/acme/instances'`)
	b.until(`!document.body.innerText.includes('appears\n')`)
	b.clean()
}

// TestEditWithDryRun checks that a change is shown as the server would store it, before it is saved.
func TestEditWithDryRun(t *testing.T) {
	b := open(t, 1440, "dark")
	b.as(server.Token)
	b.visit("acme/clusters/payments")
	b.click("Edit")
	// The page behind the dialog also has a YAML tab.
	b.until(`document.querySelector('dialog[open] [name=displayName]')`)
	b.click("YAML")
	b.until(`document.querySelector('dialog textarea')?.value.includes('displayName: Payments')`)
	type_ := func(from, to string) {
		eval[any](b, fmt.Sprintf(
			`(e => {
				e.value = e.value.replace(%q, %q)
				e.dispatchEvent(new Event('input', {bubbles: true}))
			})(document.querySelector('dialog textarea'))`, from, to))
	}
	type_("displayName: Payments", "displayName: Payments, all regions\n  nonsense: 1")
	b.click("Review the change")
	b.waitText("nonsense") // the server's error names it
	type_("\n  nonsense: 1", "")
	b.click("Review the change")
	b.until(`[...document.querySelectorAll('.diff .add')].some(l => l.innerText.includes('Payments, all regions'))`)
	b.shoot("cluster-diff-1440-dark")
	if got := eval[string](b, `document.querySelector('.page-head').innerText`); strings.Contains(got, "all regions") {
		t.Errorf("change was saved before it was confirmed: %s", got)
	}
	b.click("Save")
	b.until(`document.querySelector('.page-head').innerText.includes('Payments, all regions')`)
}

// TestEditByForm checks the edit forms: the server checks and shows the change, and fields
// that are not in the form stay unchanged.
func TestEditByForm(t *testing.T) {
	create(t, "acme", "messaginginstances",
		object{
			"metadata": object{"name": "forms", "labels": object{"keep": "me"}},
			"spec":     object{"auth": object{"apikey": object{}}},
		})
	create(t, "acme", "messagingclusters",
		object{
			"metadata": object{"name": "forms"},
			"spec": object{
				"instanceName": "forms", "location": "local",
				"config": object{"protocols": object{"stream": object{}}},
			},
		})
	create(t, "acme", "serviceaccounts", object{"metadata": object{"name": "forms"}})
	create(t, "acme", "users",
		object{"metadata": object{"name": "forms"}, "spec": object{"email": "forms@acme.example"}})
	create(t, "acme", "rolebindings", binding("forms", "ClusterRole", "org-readonly", "User", "forms", nil))
	b := open(t, 1440, "light")
	b.as(server.Token)
	tick := func(name string) {
		eval[any](b, fmt.Sprintf(`void document.querySelector('dialog [name=%s]').click()`, name))
	}
	for _, c := range []struct {
		page, plural string
		change       func()
		added        string // a line that the server would add
		want         map[string]string
	}{
		{
			"clusters", "messagingclusters", func() { b.fill("displayName", "By a form"); tick("stream") },
			"displayName: By a form",
			map[string]string{"displayName": `"By a form"`, "stream": "absent"},
		},
		{
			"instances", "messaginginstances", func() { b.fill("life", "600"); tick("keys"); tick("protected") },
			"tokenLifetimeSeconds: 600",
			map[string]string{
				"tokenLifetimeSeconds": "600", "apikey": "absent", "keep": `"me"`,
				"cloud.vendor.io/destroy-protected": `"true"`,
			},
		},
		{
			"accounts", "serviceaccounts", func() { b.fill("labels", "team=payments\nstage=test") }, "team: payments",
			map[string]string{"team": `"payments"`, "stage": `"test"`},
		},
		{
			"users", "users", func() { b.fill("first", "Maria"); b.fill("last", "Mitchell") }, "first: Maria",
			map[string]string{"first": `"Maria"`, "email": `"forms@acme.example"`},
		},
		{"roles", "rolebindings", func() {
			b.fill("add", "ServiceAccount/forms")
			// of the two, the first: the user
			eval[any](b, `void document.querySelector('dialog [aria-label="Remove forms"]').click()`)
			b.fill("where", "names")
			b.fill("topic", "orders-*")
		}, "kind: ServiceAccount", map[string]string{"topic": `"orders-*"`, "kind": `"ServiceAccount"`}},
	} {
		b.visit("acme/" + c.page + "/forms")
		b.click("Edit")
		b.until(`document.querySelector('dialog [name=labels]')`)
		b.click("Review the change")
		b.waitText("Nothing would change.")
		b.click("Back")
		c.change()
		b.click("Review the change")
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.diff .add')].some(l => l.innerText.includes(%q))`,
			c.added))
		b.click("Save")
		b.until(`!document.querySelector('dialog[open]')`)
		_, text, err := call(t.Context(), server.Token, http.MethodGet, namespaces+"acme/"+c.plural+"/forms", nil)
		if err != nil {
			t.Fatal(err)
		}
		var stored struct{ Metadata, Spec json.RawMessage }
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		all := string(stored.Spec) +
			regexp.MustCompile(`"managedFields":\[.*?\}\]`).ReplaceAllString(string(stored.Metadata), "")
		for key, want := range c.want {
			if got := strings.Contains(all, fmt.Sprintf(`%q:%s`, key, want)); want == "absent" &&
				strings.Contains(all, fmt.Sprintf(`%q:`, key)) || want != "absent" && !got {
				t.Errorf("%s: %s: want %s in %s", c.page, key, want, all)
			}
		}
	}
	b.clean()
}

// TestKeyWizard checks that the private key never leaves the browser while an API key is
// created, and that no request is sent while one is decrypted.
func TestKeyWizard(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/keys")
	eval[any](b, `(() => {
		const real = crypto.subtle.exportKey.bind(crypto.subtle)
		crypto.subtle.exportKey = async (form, key) => {
			const out = await real(form, key)
			if (form === 'pkcs8') window.leaked = btoa(String.fromCharCode(...new Uint8Array(out)))
			return out
		}
	})()`)
	b.click("New API key")
	b.fill("name", "from-browser")
	b.fill("account", "checkout")
	b.fill("instance", "shop")
	b.click("Create the key")
	b.waitText("from-browser was issued")
	b.shoot("key-made-1440-light")
	token := eval[string](b, `document.querySelector('dialog .code pre').innerText.trim()`)
	private := eval[string](b, `window.leaked`)
	if len(private) < 1000 {
		t.Fatalf("private key was not captured, so the test proves nothing: %q", private)
	}
	checked := 0
	for _, sent := range b.sent() {
		checked++
		for at := 0; at+40 <= len(private); at += 400 { // no part of it was sent either
			if strings.Contains(sent, private[at:at+40]) || strings.Contains(sent, "PRIVATE KEY") {
				t.Errorf("private key was sent: %.200s", sent)
			}
		}
	}
	t.Logf("%d requests contain no part of the private key", checked)
	status, text, err := call(t.Context(), token, http.MethodPost,
		"/clusters/acme/orders/admin/rest/topics/v1/public/default/orders-1/message", []byte("hello"))
	if err != nil || status != http.StatusOK && status != http.StatusNotFound { // 404: the role does not create topics
		t.Errorf("token of the wizard: got %d %s %v, want it to be accepted", status, text, err)
	}
	b.click("I have the token")
	if eval[bool](b, `document.documentElement.innerHTML.includes(`+fmt.Sprintf("%q", token)+`)`) {
		t.Error("token is still in the page after the dialog was closed")
	}

	b.visit("acme/keys/checkout-prod")
	b.click("Decrypt the token")
	before := len(posts(b))
	b.until(`document.querySelector('dialog textarea')`)
	eval[any](b, fmt.Sprintf(
		`(e => { e.value = %q; e.dispatchEvent(new Event('change')) })(document.querySelector('dialog textarea'))`,
		keyPEM))
	b.until(`/^[\w-]+\.[\w-]+\.[\w-]+$/.test(document.querySelector('dialog .code pre')?.innerText.trim())`)
	if now := posts(b); len(now) != before {
		t.Errorf("decrypting a key sent %v", now[before:])
	}
	b.clean()
}

// posts returns the requests other than GET.
func posts(b *tab) (list []string) {
	for _, sent := range b.sent() {
		if !strings.HasPrefix(sent, "GET ") {
			list = append(list, sent)
		}
	}
	return list
}

// TestAttackMarkupInResponses checks that markup in the server's responses is shown as text.
func TestAttackMarkupInResponses(t *testing.T) {
	evil := `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>"'><svg onload=window.pwned=1>`
	spec := object{
		"serviceAccountName": "checkout", "instanceName": "shop", "description": evil,
		"encryptionKey": object{"pem": publicPEM}, "customizedMetadata": object{"x": evil},
	}
	create(t, "acme", "apikeys", named("evil", spec))
	create(t, "acme", "roles",
		named("evil", object{"description": evil, "permissions": []string{"messaging.topics.describe"}}))
	b := open(t, 1440, "light")
	b.as(server.Token)
	for _, path := range []string{
		"acme/keys", "acme/keys/evil", "acme/roles?tab=roles", "acme/roles/role/evil",
		"acme/overview", "acme/system?tab=audit",
	} {
		b.visit(path)
		if eval[bool](b, `!!window.pwned || !!document.querySelector('main img, main script')`) {
			t.Errorf("%s executes or renders markup from the server", path)
		}
	}
	b.visit("acme/keys/evil")
	b.waitText(evil)
	b.visit("acme/keys/" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E")
	if eval[bool](b, `!!window.pwned`) {
		t.Error("markup in the URL is executed")
	}
	b.clean()
}

// TestSnippetsRun checks that the shown commands work unchanged.
func TestSnippetsRun(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/clusters")
	b.click("Show as a command")
	b.click("curl")
	b.until(`document.querySelector('dialog pre')?.innerText.startsWith('curl')`)
	snippet := eval[string](b, `document.querySelector('dialog pre').innerText`)
	if strings.Contains(snippet, server.Token) {
		t.Fatal("token is in the snippet")
	}
	run := exec.CommandContext(t.Context(), "bash", "-c", snippet)
	run.Env = append(os.Environ(), "TOKEN="+server.Token, "FRESHET_SERVER="+server.URL)
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Shop, production") {
		t.Errorf("%s\n%v %.300s", snippet, err, out)
	}
	b.click("Python")
	b.until(`document.querySelector('dialog pre')?.innerText.startsWith('import')`)
	snippet = eval[string](b, `document.querySelector('dialog pre').innerText`)
	run = exec.CommandContext(t.Context(), "python3", "-c", snippet)
	run.Env = append(os.Environ(), "TOKEN="+server.Token, "FRESHET_SERVER="+server.URL)
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "Shop, production") {
		t.Errorf("%s\n%v %.300s", snippet, err, out)
	}
	if kubectl := os.Getenv("KUBECTL"); kubectl != "" {
		b.click("kubectl")
		b.until(`document.querySelector('dialog pre')?.innerText.startsWith('kubectl')`)
		snippet = eval[string](b, `document.querySelector('dialog pre').innerText`)
		run = exec.CommandContext(t.Context(), kubectl,
			append([]string{"--kubeconfig", filepath.Join(server.DataDir, "kubeconfig")},
				strings.Fields(strings.TrimPrefix(snippet, "kubectl "))...)...)
		if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "orders") {
			t.Errorf("%s\n%v %.300s", snippet, err, out)
		}
	}
}

// TestManyRows filters and scrolls 10,000 rows, of which only about one screen is rendered.
func TestManyRows(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/clusters")
	root := eval[string](b, `document.querySelector('script[src]').src.replace(/app\.js$/, '')`)
	took := eval[float64](b,
		fmt.Sprintf(`import(%q).then(() => {
			const e = document.createElement('data-table')
			document.querySelector('#main').append(e)
			const began = performance.now()
			e.data = {
				noun: 'things', param: 'x', rows: Array.from({length: 10000}, (_, i) => ({n: i})),
				href: r => '/console/acme/keys/thing-' + r.n,
				columns: [{title: 'Name', text: r => 'thing-' + r.n}, {title: 'Number', num: true, text: r => r.n}],
			}
			return performance.now() - began
		})`, root+"lib/table.js"))
	b.until(`document.querySelectorAll('data-table:last-of-type .rows .row').length > 10`)
	if rows := eval[int](b, `document.querySelectorAll('data-table .rows .row').length`); rows > 200 {
		t.Errorf("%d rows are rendered, want about one screen", rows)
	}
	eval[any](b, `void scrollTo(0, document.documentElement.scrollHeight)`)
	b.waitText("thing-9999")
	eval[any](b, `(e => {
		e.value = '77 thing'
		e.dispatchEvent(new Event('input', {bubbles: true}))
	})([...document.querySelectorAll('[data-filter]')].at(-1))`)
	b.waitText("of 10,000 things")
	t.Logf("10,000 rows were added in %.0f ms", took)
	b.clean()
}

var secrets = regexp.MustCompile(`(?i)bearer |client_secret=[^&]`)

// TestKeyboard checks the keys for jumping, filtering and Escape.
func TestKeyboard(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/overview")
	press := func(key, more string) {
		eval[any](b, fmt.Sprintf(
			`void (document.activeElement ?? document.body).dispatchEvent(
				new KeyboardEvent('keydown', {key: %q, bubbles: true, cancelable: true %s}))`, key, more))
	}
	press("k", ", ctrlKey: true")
	b.fill("Jump to", "billing-batch")
	b.until(`document.querySelector('[role=option]')?.innerText.includes('billing-batch')`)
	press("Enter", "")
	b.until(`location.pathname === '/console/acme/keys/billing-batch'`)
	b.visit("acme/keys")
	press("/", "")
	b.until(`document.activeElement.matches('[data-filter]')`)
	b.fill("Filter keys", "nightly")
	b.until(`location.search === '?q=nightly' && document.querySelectorAll('.rows .row').length === 1`)
	for _, sent := range b.sent() {
		if secrets.MatchString(sent) {
			t.Errorf("secret is in a URL or body: %s", sent)
		}
	}
	b.clean()
}
