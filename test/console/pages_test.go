package console

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
)

// views lists every page and what can be opened on it, by the name of the screenshot. A page
// that is missing fails TestEveryPageIsShown.
var views = []struct{ name, path, prepare string }{
	{"overview", "acme/overview", ""},
	{"clusters", "acme/clusters", ""},
	{"cluster", "acme/clusters/orders", ""},
	{"cluster-usage", "acme/clusters/orders?tab=usage", ""},
	{"cluster-yaml", "acme/clusters/orders?tab=yaml", ""},
	{"cluster-new", "acme/clusters", "New cluster"},
	{"cluster-edit", "acme/clusters/orders", "Edit"},
	{"instance-edit", "acme/instances/shop", "Edit"},
	{"account-edit", "acme/accounts/checkout", "Edit"},
	{"user-edit", "acme/users/ada%40acme.example", "Edit"},
	{"role-binding-edit", "acme/roles/checkout-writes", "Edit"},
	{"instances", "acme/instances", ""},
	{"instance", "acme/instances/shop", ""},
	{"topics", "acme/topics/orders", ""},
	{"topics-namespace", "acme/topics/orders?ns=public%2Farchive", ""},
	{"topic-new", "acme/topics/orders", "New topic"},
	{"topic-tail", "acme/topics/orders/public/default/orders?from=earliest", ""},
	{"topic-found", "acme/topics/orders/public/default/orders?from=earliest&filter=key%20%3D%3D%20%22customer-2%22", ""},
	{"topic-message", "acme/topics/orders/public/default/orders?from=earliest", "customer-2"},
	{"topic-waiting", "acme/topics/orders/public/default/invoices", ""},
	{"topic-large", "acme/topics/orders/public/default/clicks?from=earliest", "long"},
	{"topic-produce", "acme/topics/orders/public/default/orders?tab=produce", ""},
	{"topic-subscriptions", "acme/topics/orders/public/default/orders?tab=subscriptions&sub=shipping", ""},
	{"topic-playground", "acme/topics/orders/public/default/orders?tab=playground", "Consume one message"},
	{"topic-schema", "acme/topics/orders/public/default/orders?tab=schema", ""},
	{"topic-settings", "acme/topics/orders/public/default/orders?tab=settings", ""},
	{"topic-partitioned", "acme/topics/orders/public/default/payments?from=earliest", ""},
	{"schemas", "acme/schemas/orders?deleted=1", ""},
	{"schema-new", "acme/schemas/orders", "Register a schema"},
	{"schema-by-id", "acme/schemas/orders?id=1", ""},
	{"subject", "acme/schemas/orders/invoices-value", ""},
	{"subject-diff", "acme/schemas/orders/invoices-value?tab=diff", ""},
	{"subject-delete", "acme/schemas/orders/address", "Delete"},
	{"groups", "acme/groups/orders", ""},
	{"group", "acme/groups/orders/public/reporting", ""},
	{"group-reset", "acme/groups/orders/public/reporting", "Reset offsets…"},
	{"topics-empty", "acme/topics/payments", ""},
	{"schemas-empty", "acme/schemas/payments", ""},
	{"groups-empty", "acme/groups/payments", ""},
	{"accounts", "acme/accounts", ""},
	{"account", "acme/accounts/checkout", ""},
	{"account-new", "acme/accounts", "New service account"},
	{"keys", "acme/keys", ""},
	{"key", "acme/keys/checkout-ci", ""},
	{"key-new", "acme/keys", "New API key"},
	{"key-revoke", "acme/keys/checkout-prod", "Revoke"},
	{"users", "acme/users", ""},
	{"user", "acme/users/ada%40acme.example", ""},
	{"roles", "acme/roles", ""},
	{"roles-all", "acme/roles?tab=roles", ""},
	{"roles-mine", "acme/roles?tab=mine", ""},
	{"role", "acme/roles/role/topic-owner", ""},
	{"role-binding", "acme/roles/checkout-writes", ""},
	{"role-grant", "acme/roles", "Grant a role"},
	{"system", "acme/system", ""},
	{"system-metrics", "acme/system?tab=metrics", ""},
	{"system-quotas", "acme/system?tab=usage", ""},
	{"system-audit", "acme/system?tab=audit", ""},
	{"system-config", "acme/system?tab=config", ""},
	{"reference", "acme/reference?doc=system", ""},
	{"empty", "globex/clusters", ""},
	{"gone", "acme/clusters/nowhere", ""},
	{"drawer", "acme/clusters", "Requests"},
	{"command", "acme/clusters", "Show as a command"},
	{"jump", "acme/clusters", "Jump to…"},
}

// axe returns the axe-core accessibility checker from npm; "" if it cannot be downloaded.
func axe(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(screenshots), "axe")
	file := filepath.Join(dir, "package", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "bash", "-c",
			"npm pack --silent axe-core@4.14.0 && tar xzf axe-core-4.14.0.tgz")
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Logf("NOT TESTED: npm cannot download axe-core, so accessibility is not checked: %v\n%s", err, out)
			return ""
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// findings returns the serious and critical findings of the checker on the page.
func (b *tab) findings() []string {
	b.t.Helper()
	text := eval[string](b,
		`axe.run(document, {resultTypes: ['violations'], rules: {region: {enabled: false}}}).then(r => JSON.stringify(
			r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').flatMap(v => v.nodes.map(n =>
				v.id + ': ' + n.target.join(' ') + ' ' + n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')))))`)
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		b.t.Fatal(err)
	}
	return list
}

// prepare opens the part of a page that the view shows.
func (b *tab) prepare(view, path, what string) {
	b.t.Helper()
	if strings.Contains(path, "from=earliest") {
		b.until(`document.querySelector('.rows .row')`)
	}
	switch {
	case what == "":
	case view == "topic-playground":
		b.click(what)
		b.until(`document.querySelector('.idparts')`)
	case view == "topic-message" || view == "topic-large":
		row := fmt.Sprintf(`[...document.querySelectorAll('.rows .row')].find(r => r.innerText.includes(%q))`, what)
		b.until(row)
		eval[any](b, `void `+row+`.querySelector('a').click()`)
		b.until(`document.querySelector('.message pre')`)
	default:
		b.click(what)
		b.until(`document.querySelector('dialog[open], .drawer') && !document.querySelector('dialog .skeleton')`)
	}
	b.settled()
}

// TestEveryPage opens every page in both themes and widths and checks that there are no
// problems, no violations of the Content Security Policy, no horizontal scrolling and no
// serious accessibility findings. With -short each width has one of the themes.
func TestEveryPage(t *testing.T) {
	checker := axe(t)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			b := open(t, 1440, "light")
			b.as(server.Token)
			b.visit(v.path)
			b.prepare(v.name, v.path, v.prepare)
			swagger := strings.HasPrefix(v.name, "reference") // third-party code
			if swagger {
				b.until(`document.querySelector('.swagger-ui .opblock')`)
			}
			if checker != "" {
				eval[any](b, checker+`; void 0`)
			}
			for _, width := range []int64{1440, 390} {
				for _, theme := range []string{"light", "dark"} {
					if testing.Short() && (width == 1440) != (theme == "light") {
						continue
					}
					b.look(width, theme)
					b.shoot(fmt.Sprintf("%s-%d-%s", v.name, width, theme))
					if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
						t.Errorf("%d %s: page is %d pixels wider than the screen", width, theme, wide)
					}
					if checker == "" || swagger {
						continue
					}
					for _, finding := range b.findings() {
						t.Errorf("%d %s: accessibility: %s", width, theme, finding)
					}
				}
			}
			b.clean()
		})
	}
}

// TestEveryPageIsShown checks that every page of the menu is in views.
func TestEveryPageIsShown(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/overview")
	for _, path := range eval[[]string](b,
		`[...document.querySelectorAll('.side nav a')].map(a => a.pathname.split('/')[3])`) {
		found := false
		for _, v := range views {
			found = found || strings.HasPrefix(v.path, "acme/"+path)
		}
		if !found {
			t.Errorf("page %s is not in views", path)
		}
	}
}

// TestFirstPaint logs the cost of a first visit and the load of the machine. It does not fail
// on slow times, because other work affects them. console/console_test.go limits the size.
func TestFirstPaint(t *testing.T) {
	var paints, pages []float64
	var b *tab
	for range 5 { // each with its own cache
		b = open(t, 1440, "light")
		b.as(server.Token)
		b.before(`new MutationObserver((_, me) => {
			if (document.querySelector('#main h1')) { window.shownAt = performance.now(); me.disconnect() }
		}).observe(document, {childList: true, subtree: true})`)
		b.visit("acme/overview")
		paints = append(paints, eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
		pages = append(pages, eval[float64](b, `window.shownAt`))
	}
	slices.Sort(paints)
	slices.Sort(pages)
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	t.Logf("first paint %.0f ms (of five, %.0f to %.0f), page content after %.0f ms, load %s, %d bytes in %d files",
		paints[2], paints[0], paints[4], pages[2], strings.Fields(string(load))[0],
		eval[int](b, `performance.getEntriesByType('resource').filter(r => r.name.includes('/console/'))
			.reduce((n, r) => n + r.transferSize, performance.getEntriesByType('navigation')[0].transferSize)`),
		eval[int](b, `performance.getEntriesByType('resource').filter(r => r.name.includes('/console/')).length`))
	b.clean()
}

// TestSlowNetwork checks that the console shows a loading state on a slow network, and then the content.
func TestSlowNetwork(t *testing.T) {
	b := open(t, 390, "light")
	b.as(server.Token)
	command(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{
			Latency: 400, DownloadThroughput: 50 << 10,
			UploadThroughput: 20 << 10,
		}},
	})
	b.before(`new MutationObserver(() => { if (document.querySelector('.skeleton')) window.sawLoading = true })
		.observe(document, {childList: true, subtree: true})`)
	b.visit("acme/clusters")
	b.waitText("Shop, production")
	if !eval[bool](b, `window.sawLoading`) {
		t.Error("no loading state was shown")
	}
	if took := eval[float64](b,
		`Math.max(...performance.getEntriesByType('resource').map(r => r.duration))`); took < 300 {
		t.Errorf("slowest file took %.0f ms: the network was not slow, so this proves nothing", took)
	}
	b.clean()
}
