package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTokenForAnotherAudience checks that the page reports that a token for the resource API
// has the wrong audience for a cluster, and does not request a new sign-in.
func TestTokenForAnotherAudience(t *testing.T) {
	id, secret := credentials(t, "reporting")
	res, err := http.PostForm(server.URL+"/oauth/token",
		url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var response struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&response); err != nil || response.Token == "" {
		t.Fatalf("%d %v", res.StatusCode, err)
	}
	b := open(t, 1440, "light")
	b.as(response.Token)
	b.visit("acme/topics/orders")
	b.waitText("it has a different audience than urn:vendor:messaging:acme:shop")
	b.visit("acme/clusters")
	b.waitText("Shop, production")
	if eval[bool](b, `document.body.innerText.includes('Sign in again')`) {
		t.Error("page requests a new sign-in although the token is valid")
	}
}

// TestKeyboardOfData uses the pages of a cluster's data without a mouse: it jumps to a topic
// and a subject by name, moves through rows with the arrow keys, opens a message, and opens
// tabs with Enter.
func TestKeyboardOfData(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/overview")
	press := func(keys ...string) {
		for _, key := range keys {
			do(b, chromedp.KeyEvent(key))
		}
	}
	jump := func(name, kind, path string) {
		eval[any](b, `void document.body.dispatchEvent(
			new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))`)
		b.until(`document.activeElement.getAttribute('aria-label') === 'Jump to'`)
		press(strings.Split(name, "")...)
		b.until(fmt.Sprintf(
			`(o => o?.innerText.includes(%q) && o.innerText.includes(%q))(
				document.querySelector('[role=option][aria-selected=true]'))`, name, kind))
		press(kb.Enter)
		b.until(fmt.Sprintf(`location.pathname === %q`, path))
		b.settled()
	}
	focused := func(condition string) { t.Helper(); b.until(`(e => ` + condition + `)(document.activeElement)`) }
	jump("invoices-value", "Subject in orders", "/console/acme/schemas/orders/invoices-value")
	jump("clicks", "Topic in orders", "/console/acme/topics/orders/public/default/clicks")
	b.visit("acme/topics/orders")
	b.until(`document.querySelector('.rows .row')`)
	eval[any](b, `void document.body.dispatchEvent(
		new KeyboardEvent('keydown', {key: '/', bubbles: true, cancelable: true}))`)
	focused(`e.matches('[data-filter]')`)
	press("o", "r", "d", "e", "r", "s")
	b.until(`document.querySelectorAll('.rows .row').length > 0 &&
		[...document.querySelectorAll('.rows .row')].every(r => r.innerText.includes('orders'))`)
	for range 20 { // past the options to the first row
		press(kb.Tab)
		if eval[bool](b, `!!document.activeElement.closest('.rows')`) {
			break
		}
	}
	focused(`e.closest('.rows') && e.matches('a')`)
	press(kb.Enter)
	b.until(`location.pathname.startsWith('/console/acme/topics/orders/public/')`)
	b.visit("acme/topics/orders/public/default/orders?from=earliest")
	b.until(`document.querySelectorAll('.rows .row').length > 2`)
	eval[any](b, `void document.querySelector('.rows a').focus()`)
	press(kb.ArrowDown, kb.Enter)
	b.until(`document.querySelector('.message pre') && new URLSearchParams(location.search).get('msg')`)
	eval[any](b, `void document.querySelector('.tabs a').focus()`)
	press(kb.Tab, kb.Enter)
	b.until(`new URLSearchParams(location.search).get('tab') === 'produce'`)
	b.until(`getComputedStyle(document.activeElement).outlineStyle !== 'none'`) // the focus is visible
	b.clean()
}

// TestJumpWhileLooking checks that late results change neither the selection nor the order: a
// topic whose name equals the typed text is before a subject that begins with it, whichever
// list arrives first.
func TestJumpWhileLooking(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/overview")
	eval[any](b, `void (() => {
		const late = new Promise(go => { window.letThrough = go }), ask = window.fetch
		window.fetch = async (url, o) => { if (String(url).endsWith('/topics')) await late; return ask(url, o) }
	})()`)
	eval[any](b, `void document.body.dispatchEvent(
		new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))`)
	b.until(`document.activeElement.getAttribute('aria-label') === 'Jump to'`)
	for _, key := range "clicks" {
		do(b, chromedp.KeyEvent(string(key)))
	}
	shown := `[...document.querySelectorAll('[role=option]')].map(o => o.innerText.split('\n')[0]).join()`
	b.until(shown + ` === 'clicks-value'`)
	do(b, chromedp.KeyEvent(kb.ArrowDown)) // selects the only option explicitly
	eval[any](b, `void window.letThrough()`)
	b.until(shown + ` === 'clicks,clicks-value'`)
	if picked := eval[string](b,
		`document.querySelector('[role=option][aria-selected=true]').innerText`); !strings.HasPrefix(picked,
		"clicks-value") {
		t.Errorf("selected option changed from clicks-value to %q", picked)
	}
	do(b, chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === '/console/acme/schemas/orders/clicks-value'`)
	b.clean()
}

// TestTabsOnNarrowScreens checks that a narrow screen shows the open tab, and that there are more tabs.
func TestTabsOnNarrowScreens(t *testing.T) {
	b := open(t, 390, "light")
	b.as(server.Token)
	b.visit("acme/topics/orders/public/default/orders?tab=settings")
	inside := `(r => r.left >= 0 && r.right <= innerWidth)(
		document.querySelector('.tabs [aria-current]').getBoundingClientRect())`
	b.until(inside + ` && document.querySelector('.tabs.before')`)
	eval[any](b, `void document.querySelector('.tabs a').click()`)
	b.until(inside + ` && document.querySelector('.tabs.after:not(.before)')`)
}
