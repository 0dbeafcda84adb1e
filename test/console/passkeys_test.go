package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// device adds a virtual authenticator to the tab that stores passkeys and verifies its user.
func (b *tab) device() webauthn.AuthenticatorID {
	b.t.Helper()
	command(b, webauthn.Enable, webauthn.EnableParams{})
	return command(b, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: "ctap2", Transport: "internal", HasResidentKey: true, HasUserVerification: true,
			IsUserVerified:              true,
			AutomaticPresenceSimulation: true,
		}}).AuthenticatorID
}

// signInPage opens the server's sign-in page.
func (b *tab) signInPage() {
	b.t.Helper()
	do(b, chromedp.Navigate(byName()+"/oauth/signin?again=true&next=%2Foauth%2Faccount"))
	b.until(`document.querySelector('#organization')`)
}

// byName returns the site with a host name, because browsers do not support passkeys for IP addresses.
func byName() string { return strings.Replace(site, "127.0.0.1", "localhost", 1) }

// TestPasskeys lets a user create a passkey with an invitation, sign in to the console with it,
// with and without a user name, add another one and remove one. The last one cannot be removed.
func TestPasskeys(t *testing.T) {
	const who = "emmy@acme.example"
	create(t, "acme", "users", map[string]any{
		"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "User", "metadata": map[string]any{"name": who},
		"spec": map[string]any{"email": who},
	})
	create(t, "acme", "rolebindings", binding("emmy-reads", "ClusterRole", "org-readonly", "User", who, nil))
	status, text, err := call(t.Context(), server.Token, http.MethodPost,
		namespaces+"acme/users/emmy%40acme.example/invite", nil)
	if err != nil || status != http.StatusCreated {
		t.Fatalf("inviting: %d %s %v", status, text, err)
	}
	var made struct{ Status struct{ URL string } }
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	checker := axe(t)

	b := open(t, 1440, "light")
	do(b, chromedp.Navigate(made.Status.URL))
	b.waitText("open this page at localhost") // the host is an IP address
	b.accessible(checker)
	b.click("open this page at localhost")
	b.until(`location.hostname === 'localhost' && ` + button + `('Create a passkey')`)
	laptop := b.device()
	b.checkLooks("people-invite", checker)
	b.fill("label", "Laptop")
	b.click("Create a passkey")
	b.until(`location.pathname === '/console/acme/overview'`)
	b.settled()
	b.until(`document.querySelector('.chip').innerText.includes('emmy@acme.example')`)
	do(b, chromedp.Navigate(byName()+"/console/acme/users/emmy%40acme.example"))
	b.waitText("the person can sign in with a passkey")
	eval[any](b, `void document.querySelector('.chip').click()`)
	b.click("Your account")
	b.until(`location.pathname === '/oauth/account'`)
	b.waitText("Laptop")
	if has := command(b, webauthn.GetCredentials,
		webauthn.GetCredentialsParams{AuthenticatorID: laptop}).Credentials; len(has) != 1 ||
		!has[0].IsResidentCredential || has[0].UserName != who {
		t.Fatalf("device has %+v, want one discoverable passkey of the user", has)
	}
	b.click("Add a passkey") // this device already has one
	b.waitText("This device already has one of your passkeys")
	command(b, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: laptop})
	key := b.device()
	b.fill("label", "Security key")
	b.click("Add a passkey")
	b.until(`document.querySelectorAll('.keys li').length === 2`)
	b.checkLooks("people-account", checker)

	b.signInPage()
	b.checkLooks("people-signin", checker)
	b.click("Sign in with a passkey")
	b.until(`location.pathname === '/oauth/account'`)
	b.waitText("last used")
	b.signInPage()
	b.fill("organization", "acme")
	b.fill("name", "ada@acme.example") // another user
	b.click("Sign in with a passkey")
	b.waitText("belongs to another user")
	b.fill("organization", "acme")
	b.fill("name", who)
	b.click("Sign in with a passkey")
	b.until(`location.pathname === '/oauth/account'`)

	remove := func(name string) {
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.keys li')].some(l => l.innerText.includes(%q))`, name))
		eval[any](b, fmt.Sprintf(
			`void ([...document.querySelectorAll('.keys li')].find(l => l.innerText.includes(%q))
				.querySelector('details').open = true)`, name))
		b.click("Remove " + name)
	}
	remove("Laptop")
	b.until(`document.querySelectorAll('.keys li').length === 1`)
	remove("Security key")
	b.waitText("your only way to sign in")
	command(b, webauthn.ClearCredentials, webauthn.ClearCredentialsParams{AuthenticatorID: key})
	b.signInPage()
	command(b, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: key, IsUserVerified: false})
	b.click("Sign in with a passkey")
	b.waitText("No passkey was used")
	for name, path := range map[string]string{
		"signout": "/oauth/signout", "device": "/oauth/device",
		"message": "/oauth/invite?token=used",
	} {
		do(b, chromedp.Navigate(byName()+path))
		b.until(`document.querySelector('.card h1')`)
		b.checkLooks("people-"+name, checker)
	}
	b.clean()
}

// checkLooks saves screenshots of a page in both themes and widths, and checks it.
func (b *tab) checkLooks(name, checker string) {
	b.t.Helper()
	for _, width := range []int64{390, 1440} {
		for _, theme := range []string{"dark", "light"} {
			b.look(width, theme)
			b.shoot(fmt.Sprintf("%s-%d-%s", name, width, theme))
			if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
				b.t.Errorf("%s %d %s: page is %d pixels wider than the screen", name, width, theme, wide)
			}
			b.accessible(checker)
		}
	}
}

// accessible reports the serious findings of the accessibility checker.
func (b *tab) accessible(checker string) {
	b.t.Helper()
	if checker == "" {
		return
	}
	eval[any](b, `window.axe ? void 0 : (`+"() => {"+checker+"}"+`)(); void 0`)
	for _, finding := range b.findings() {
		b.t.Errorf("accessibility: %s", finding)
	}
}
