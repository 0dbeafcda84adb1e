package console

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// documentation lists pages of the documentation with different content, by the name of the screenshot.
var documentation = []struct{ name, path string }{
	{"home", ""},
	{"howto", "howto/messages.html"},
	{"configuration", "reference/configuration.html"}, // long code
	{"specification", "spec/stream.html"},             // wide tables
	{"command", "reference/cli/freshet-ensemble.html"},
	{"decisions", "adr/"},
	{"changes", "project/changelog.html"},
	{"pictures", "architecture.html"},
}

// read opens a page of the documentation.
func (b *tab) read(path string) {
	b.t.Helper()
	do(b, chromedp.Navigate(site+"/docs/"+path))
	b.until(`document.readyState === 'complete' && document.querySelector('article h1')`)
}

// TestDocumentation opens pages of the documentation in both themes and widths and checks that there are no
// problems, no horizontal scrolling and no serious accessibility findings.
func TestDocumentation(t *testing.T) {
	checker := axe(t)
	for _, page := range documentation {
		t.Run(page.name, func(t *testing.T) {
			b := open(t, 1440, "light")
			b.read(page.path)
			if checker != "" {
				eval[any](b, checker+`; void 0`)
			}
			for _, width := range []int64{1440, 390} {
				for _, theme := range []string{"light", "dark"} {
					if testing.Short() && (width == 1440) != (theme == "light") {
						continue
					}
					b.look(width, theme)
					b.shoot(fmt.Sprintf("docs-%s-%d-%s", page.name, width, theme))
					if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
						t.Errorf("%d %s: page is %d pixels wider than the screen", width, theme, wide)
					}
					if checker == "" {
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

// TestDocumentationPictures checks that the browser loads all pictures under the pages' policy.
func TestDocumentationPictures(t *testing.T) {
	b := open(t, 1440, "dark")
	for path, want := range map[string]int{"architecture.html": 3, "tutorial.html": 5, "project/": 3} {
		b.read(path)
		b.until(`[...document.querySelectorAll('article img')].every(i => i.complete)`)
		loaded := eval[int](b, `[...document.querySelectorAll('article img')].filter(i => i.naturalWidth > 100).length`)
		if loaded != want {
			t.Errorf("%s shows %d pictures, want %d", path, loaded, want)
		}
	}
	b.clean()
}

// TestDocumentationIsPrintable checks that a printed page has only the text, dark on white also in the dark theme.
func TestDocumentationIsPrintable(t *testing.T) {
	b := open(t, 800, "dark")
	b.read("howto/messages.html")
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media:    "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	b.until(`getComputedStyle(document.querySelector('.pages')).display === 'none'`)
	shown := eval[[]string](b, `['.top', '.contents', '.copy', 'footer', 'article', 'pre'].filter(s =>
		document.querySelector(s).checkVisibility())`)
	if want := []string{"article", "pre"}; !slices.Equal(shown, want) {
		t.Errorf("printed page shows %q, want %q", shown, want)
	}
	if got := eval[string](b, `getComputedStyle(document.body).color + ' on ' +
		getComputedStyle(document.body).backgroundColor`); got != "rgb(0, 0, 0) on rgb(255, 255, 255)" {
		t.Errorf("printed text is %s, want black on white", got)
	}
	b.shoot("docs-print")
	b.clean()
}

// TestDocumentationSearch enters the title of every page and checks that the search finds the page.
func TestDocumentationSearch(t *testing.T) {
	b := open(t, 1440, "light")
	b.read("howto/messages.html")
	eval[any](b, `void (window.enter = async text => {
		const input = document.querySelector('.search input'), list = document.querySelector('.results')
		input.focus()
		input.value = text
		input.dispatchEvent(new Event('input'))
		for (const end = Date.now() + 30000; list.dataset.query !== text && Date.now() < end;)
			await new Promise(done => setTimeout(done))
		return [...list.querySelectorAll('a')].map(a => a.href)
	})`)
	result := eval[struct {
		Pages  int
		Missed []string
	}](b, `(async () => {
		const { pages } = await (await fetch(document.querySelector('script').dataset.index)).json()
		const missed = []
		for (const [location, title] of pages) {
			if (!(await enter(title)).includes(new URL('/docs/' + location, document.baseURI).href))
				missed.push(location + ': ' + title)
		}
		return { Pages: pages.length, Missed: missed }
	})()`)
	if result.Pages < 100 || len(result.Missed) > 0 {
		t.Errorf("searched %d pages by title, did not find %q", result.Pages, result.Missed)
	}
	found := eval[[]string](b, `enter('dead letters')`)
	if len(found) == 0 || len(found) > 20 {
		t.Errorf("dead letters: got %d results, want 1 to 20", len(found))
	}
	if found := eval[[]string](b, `enter('xyzzyplugh')`); len(found) != 0 {
		t.Errorf("unknown word: got %q, want no result", found)
	}
	b.waitText("No page has all of these words.")
	eval[any](b, `enter('ensemble faults')`)
	b.shoot("docs-search")
	eval[any](b, `void document.querySelector('.search input').dispatchEvent(
		new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))`)
	b.until(`location.pathname !== '/docs/howto/messages.html' && document.readyState === 'complete'`)
	b.clean()
}

// TestDocumentationCopy checks the copy button of a code block, with and without access to the clipboard.
func TestDocumentationCopy(t *testing.T) {
	for name, tc := range map[string]struct{ clipboard, label, text string }{
		"clipboard":    {`{ writeText: async text => { window.copied = text } }`, "Copied", `window.copied`},
		"no clipboard": {`undefined`, "Selected", `getSelection().toString()`},
	} {
		b := open(t, 1440, "light")
		b.before(`Object.defineProperty(navigator, 'clipboard', { value: ` + tc.clipboard + ` })`)
		b.read("howto/messages.html")
		eval[any](b, `void document.querySelector('.copy').click()`)
		b.until(fmt.Sprintf(`document.querySelector('.copy').textContent === %q`, tc.label))
		if !eval[bool](b, `document.querySelector('.code code').textContent.trim() === (`+tc.text+`).trim()`) {
			t.Errorf("%s: got %q, want the code", name, eval[string](b, tc.text))
		}
		b.clean()
	}
}

// TestDocumentationWithoutScript checks that a page is complete without JavaScript, and has no control that
// needs it.
func TestDocumentationWithoutScript(t *testing.T) {
	b := open(t, 390, "dark")
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	do(b, chromedp.Navigate(site+"/docs/howto/messages.html"))
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})
	if n := eval[int](b, `document.querySelectorAll('button, input').length`); n != 0 {
		t.Errorf("page has %d buttons and fields without JavaScript, want none", n)
	}
	if n := eval[int](b, `document.querySelectorAll('.pages a').length`); n < 30 {
		t.Errorf("navigation has %d links without JavaScript, want at least 30", n)
	}
	b.clean()
}

// TestDocumentationIsLinked checks that the console and its sign-in page link to the documentation.
func TestDocumentationIsLinked(t *testing.T) {
	b := open(t, 1440, "light")
	do(b, chromedp.Navigate(site+"/console/"))
	b.until(`document.querySelector('.signin a[href="/docs/"]')`)
	signedIn := open(t, 1440, "light")
	signedIn.as(server.Token)
	signedIn.visit("acme/overview")
	signedIn.until(`document.querySelector('.side a[href="/docs/"]')`)
}
