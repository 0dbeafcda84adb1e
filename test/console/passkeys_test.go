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

// device gives the tab a device that keeps passkeys, and whose owner is always there.
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

// signInPage opens the server's own page.
func (b *tab) signInPage() {
	b.t.Helper()
	do(b, chromedp.Navigate(byName()+"/oauth/signin?again=true&next=%2Foauth%2Faccount"))
	b.until(`document.querySelector('#organization')`)
}

// byName is the site at a name: browsers have no passkeys at numbers.
func byName() string { return strings.Replace(site, "127.0.0.1", "localhost", 1) }

// A person sets a passkey by invitation, is in the console, signs in with it again with
// and without a name, adds another, removes one, and cannot remove the last.
func TestPasskeys(t *testing.T) {
	const who = "emmy@acme.example"
	create(t, "acme", "users", map[string]any{
		"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "User", "metadata": map[string]any{"name": who},
		"spec": map[string]any{"email": who},
	})
	create(t, "acme", "rolebindings", binding("emmy-reads", "ClusterRole", "org-readonly", "User", who, nil))
	status, text, err := call(t.Context(), server.Token, http.MethodPost,
		group+"acme/users/emmy%40acme.example/invite", nil)
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
	b.says("open this page at localhost") // the address is a number
	b.accessible(checker)
	b.click("open this page at localhost")
	b.until(`location.hostname === 'localhost' && ` + button + `('Create a passkey')`)
	laptop := b.device()
	b.looks("people-invite", checker)
	b.fill("label", "Laptop")
	b.click("Create a passkey")
	b.until(`location.pathname === '/console/acme/overview'`)
	b.settled()
	b.until(`document.querySelector('.chip').innerText.includes('emmy@acme.example')`)
	do(b, chromedp.Navigate(byName()+"/console/acme/users/emmy%40acme.example"))
	b.says("the person can sign in with a passkey")
	eval[any](b, `void document.querySelector('.chip').click()`)
	b.click("Your account")
	b.until(`location.pathname === '/oauth/account'`)
	b.says("Laptop")
	if has := command(b, webauthn.GetCredentials,
		webauthn.GetCredentialsParams{AuthenticatorID: laptop}).Credentials; len(has) != 1 ||
		!has[0].IsResidentCredential || has[0].UserName != who {
		t.Fatalf("the device has %+v, want one passkey of hers that it can find by itself", has)
	}
	b.click("Add a passkey") // this device has one
	b.says("This device has a passkey of yours already")
	command(b, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: laptop})
	key := b.device()
	b.fill("label", "Security key")
	b.click("Add a passkey")
	b.until(`document.querySelectorAll('.keys li').length === 2`)
	b.looks("people-account", checker)

	b.signInPage()
	b.looks("people-signin", checker)
	b.click("Sign in with a passkey")
	b.until(`location.pathname === '/oauth/account'`)
	b.says("last used")
	b.signInPage()
	b.fill("organization", "acme")
	b.fill("name", "ada@acme.example") // somebody else
	b.click("Sign in with a passkey")
	b.says("somebody else's")
	b.fill("organization", "acme")
	b.fill("name", who)
	b.click("Sign in with a passkey")
	b.until(`location.pathname === '/oauth/account'`)

	remove := func(name string) {
		eval[any](b, fmt.Sprintf(
			`void ([...document.querySelectorAll('.keys li')].find(l => l.innerText.includes(%q)).querySelector('details').open = true)`, name))
		b.click("Remove " + name)
	}
	remove("Laptop")
	b.until(`document.querySelectorAll('.keys li').length === 1`)
	remove("Security key")
	b.says("your only way to sign in")
	command(b, webauthn.ClearCredentials, webauthn.ClearCredentialsParams{AuthenticatorID: key})
	b.signInPage()
	command(b, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: key, IsUserVerified: false})
	b.click("Sign in with a passkey")
	b.says("No passkey was used")
	for name, path := range map[string]string{
		"signout": "/oauth/signout", "device": "/oauth/device",
		"message": "/oauth/invite?token=used",
	} {
		do(b, chromedp.Navigate(byName()+path))
		b.until(`document.querySelector('.card h1')`)
		b.looks("people-"+name, checker)
	}
	b.clean()
}

// looks leaves screenshots of a page in both themes and widths, and checks it.
func (b *tab) looks(name, checker string) {
	b.t.Helper()
	for _, width := range []int64{390, 1440} {
		for _, theme := range []string{"dark", "light"} {
			b.look(width, theme)
			b.shoot(fmt.Sprintf("%s-%d-%s", name, width, theme))
			if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
				b.t.Errorf("%s %d %s: the page is %d pixels wider than the screen", name, width, theme, wide)
			}
			b.accessible(checker)
		}
	}
}

// accessible reports what the checker holds to be serious.
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
