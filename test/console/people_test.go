package console

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPeople invites a user from the console. The user sets a password on the page of the link
// and is signed in, without a stored token that outlives the page. Signing out or deleting the
// user ends the session immediately.
func TestPeople(t *testing.T) {
	boss := open(t, 1440, "light")
	boss.as(server.Token)
	boss.visit("acme/users")
	boss.click("Invite")
	boss.fill("email", "mary@acme.example")
	boss.fill("first", "Mary")
	boss.fill("last", "Somerville")
	eval[any](boss, `void [...document.querySelectorAll('dialog button')].find(b => b.innerText === 'Invite').click()`)
	boss.waitText("Invitation of mary@acme.example")
	boss.click("Create the link")
	boss.until(`document.querySelector('dialog .code pre')?.innerText.startsWith('http')`)
	boss.shoot("user-invited-1440-light")
	link := eval[string](boss, `document.querySelector('dialog .code pre').innerText.trim()`)
	boss.click("Done")
	create(t, "acme", "rolebindings",
		binding("mary-reads", "ClusterRole", "org-readonly", "User", "mary@acme.example", nil))

	mary := open(t, 1440, "light")
	do(mary, chromedp.Navigate(link))
	const password = "seven rivers meet here"
	do(mary, chromedp.SendKeys(chromedp.CSS(`#password`), password))
	do(mary, chromedp.SendKeys(chromedp.CSS(`#repeated`), password))
	do(mary, chromedp.Click(chromedp.CSS(`button.primary`)))
	mary.until(`location.pathname === '/console/acme/overview'`)
	mary.settled()
	mary.until(`document.querySelector('.chip').innerText.includes('mary@acme.example')`)
	mary.visit("acme/clusters?q=orders") // a reload: the browser's session signs her in again
	mary.waitText("Shop, production")
	if kept := eval[string](mary,
		`JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])`); strings.Contains(kept, "token") ||
		strings.Contains(kept, "refresh") {
		t.Errorf("part of the session is stored in the page: %s", kept)
	}
	mary.until(button + `('New cluster')?.getAttribute('aria-disabled') === 'true'`)
	mary.clean()

	eval[any](mary, `void document.querySelector('.chip').click()`)
	mary.click("Sign out")
	mary.waitText("Sign in to Freshet")
	mary.shoot("signin-people-1440-light")
	mary.click("Continue to sign in")
	mary.until(`document.querySelector('#organization')`)
	do(mary, chromedp.SetValue(chromedp.CSS(`#organization`), "acme"))
	do(mary, chromedp.SetValue(chromedp.CSS(`#name`), "mary@acme.example"))
	do(mary, chromedp.SetValue(chromedp.CSS(`#password`), password))
	do(mary, chromedp.Click(chromedp.CSS(`button.primary`)))
	mary.until(`location.search === '?q=orders'`) // back on the previous page
	mary.waitText("Shop, production")

	status, text, err := call(t.Context(), server.Token, http.MethodDelete,
		namespaces+"acme/users/mary%40acme.example", nil)
	if err != nil || status >= 300 {
		t.Fatalf("deleting the user: %d %s %v", status, text, err)
	}
	mary.click("Instances")
	mary.waitText("Sign in again")
	mary.shoot("signin-people-again-1440-light")
}

// TestAdministratorLink signs in with a link of freshet admin link.
func TestAdministratorLink(t *testing.T) {
	status, text, err := call(t.Context(), server.Token, http.MethodGet, "/.well-known/openid-configuration", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
	var found struct {
		Types []string `json:"response_types_supported"`
	}
	if err := json.Unmarshal(text, &found); err != nil || len(found.Types) == 0 {
		t.Fatalf("sign-in is disabled: %s %v", text, err)
	}
	made, err := exec.CommandContext(t.Context(), executable, "admin", "link", "--data-dir", server.DataDir).Output()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, 390, "dark")
	do(b, chromedp.Navigate(strings.TrimSpace(string(made))))
	do(b, chromedp.Click(chromedp.CSS(`button.primary`)))
	b.until(`location.pathname === '/console/default/overview'`)
	b.settled()
	b.shoot("overview-first-390-dark")
	b.clean()
}
