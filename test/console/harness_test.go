package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"freshet/console"
	"freshet/test/testserver"
)

var (
	server      *testserver.Server
	site        string // base URL for the browser: the server, or a proxy in front of it
	browser     context.Context
	screenshots string
	executable  string // path of the server binary
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if _, err := exec.LookPath("chromium"); err != nil {
		fmt.Fprintln(os.Stderr,
			"NOT TESTED: chromium is not installed, so the console is not opened in a browser (Debian: chromium)")
		return 0
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return fail(err)
	}
	screenshots = filepath.Join(root, ".cache", "screenshots")
	if err := os.MkdirAll(screenshots, 0o755); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp("", "freshet-console-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	executable = os.Getenv("FRESHET_BIN")
	if executable == "" {
		executable = filepath.Join(dir, "freshet")
		build := exec.Command("go", "build", "-o", executable, "./cmd/freshet")
		build.Dir = root
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fail(fmt.Errorf("building freshet: %w\n%s", err, out))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	options := testserver.Options{Kafka: true}
	if os.Getenv("FRESHET_CONSOLE_SOURCE") != "" {
		front := startSourceProxy()
		defer front.Close()
		site = front.URL
		options.Env = []string{"FRESHET_BASE_URL=" + site} // sign-in redirects to the server's own addresses only
	}
	if server, err = testserver.Start(ctx, executable, dir, options); err != nil {
		return fail(err)
	}
	defer server.Kill()
	if site == "" {
		site = server.URL
	}
	if err := seed(ctx); err != nil {
		return fail(err)
	}
	if err := seedData(ctx); err != nil {
		return fail(err)
	}
	go traffic(ctx)
	allocator, stop := chromedp.NewExecAllocator(ctx,
		append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"))...)
	defer stop()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		return fail(fmt.Errorf("starting chromium: %w", err))
	}
	return m.Run()
}

// startSourceProxy serves the console of the source tree and forwards all other requests to the
// binary, so that work on the console needs no new binary.
func startSourceProxy() *httptest.Server {
	rest := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
		},
		FlushInterval: -1, ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	mux := http.NewServeMux()
	mux.Handle(console.Root+"/", console.Handler())
	mux.Handle("/", rest)
	return httptest.NewServer(mux)
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// call calls the server directly, not through the browser. It sends a body as JSON, []byte unchanged.
func call(ctx context.Context, token, method, path string, body any, headers ...string) (int, []byte, error) {
	var from io.Reader = http.NoBody
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		from, kind = bytes.NewReader(b), "application/octet-stream"
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		from = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, server.URL+path, from)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, text, err
}

const namespaces = "/apis/cloud.vendor.io/v1alpha1/namespaces/"

// create creates an object, and fails the test on an error.
func create(t *testing.T, org, plural string, object map[string]any) map[string]any {
	t.Helper()
	status, text, err := call(t.Context(), server.Token, http.MethodPost, namespaces+org+"/"+plural, object)
	if err != nil || status >= 300 {
		t.Fatalf("creating an object of %s: got %d %s %v", plural, status, text, err)
	}
	var made map[string]any
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// tab is a browser tab with its requests and reported problems. mu protects both.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []*network.Request
	problems []string
}

// open opens a tab in its own browser context.
func open(t *testing.T, width int64, theme string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if _, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		b.listen(target)
		return chromedp.Void{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	b.ctx = ctx
	command(b, network.Enable, network.EnableParams{MaxPostDataSize: ptr[int64](1 << 20)})
	command(b, log.Enable, cdp.Empty{})
	command(b, runtime.Enable, cdp.Empty{})
	b.look(width, theme)
	b.before(`addEventListener('securitypolicyviolation', e => console.error('CSP violation: ' +
		e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ':' + e.lineNumber + ' ' + e.sample))`)
	return b
}

func ptr[T any](v T) *T { return &v }

// command sends a command of the Chrome DevTools Protocol.
func command[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	return do(b, func(ctx context.Context, target *chromedp.Target) (R,
		error,
	) {
		return cdp.Call(ctx, target, c, params)
	})
}

func do[R any](b *tab, action chromedp.Action[R]) R {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatalf("%v\npage: %s", err, b.pageText())
	}
	return result
}

// listen records requests and problems of the page until the tab is closed.
func (b *tab) listen(target *chromedp.Target) {
	follow(b, target, network.RequestWillBeSent,
		func(e network.EventRequestWillBeSent) { b.requests = append(b.requests, e.Request) })
	follow(b, target, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		b.problems = append(b.problems,
			fmt.Sprintf("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	})
	follow(b, target, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) {
		if e.Type != "error" && e.Type != "warning" {
			return
		}
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+" "+a.Description)
		}
		b.problems = append(b.problems, "console: "+strings.Join(words, " "))
	})
	follow(b, target, log.EntryAdded, func(e log.EventEntryAdded) {
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
			b.problems = append(b.problems, "log: "+e.Entry.Text)
		}
	})
}

func follow[E any](b *tab, target *chromedp.Target, event cdp.Event[E], note func(E)) {
	events := cdp.Events(b.ctx, target, event)
	go func() {
		for e, err := range events {
			if err != nil {
				return
			}
			b.mu.Lock()
			note(e)
			b.mu.Unlock()
		}
	}()
}

// clean fails the test if the page had a problem: an exception, an error message in the
// browser's console, a violation of the Content Security Policy.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("problem on the page: %s", p)
	}
	b.problems = nil
}

// sent returns everything that was sent: URLs and bodies.
func (b *tab) sent() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		text := r.Method + " " + r.URL
		for _, part := range r.PostDataEntries {
			text += " " + string(part.Bytes)
		}
		list = append(list, text)
	}
	return list
}

// pageText returns the URL and text of the page, for failure messages.
func (b *tab) pageText() string {
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx,
		chromedp.Evaluate[string](`location.href + '\n' + document.body.innerText.slice(0, 3000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// look sets the size of the window and the theme.
func (b *tab) look(width int64, theme string) {
	b.t.Helper()
	height := int64(900)
	if width < 600 {
		height = 844
	}
	command(b, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{
			Width: width, Height: height, DeviceScaleFactor: 1,
			Mobile: width < 600,
		})
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	// Effects of the change are rendered in the next frames.
	eval[any](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
		requestAnimationFrame(() => setTimeout(() => done(null))))))`)
}

// before runs a script before the page's own scripts.
func (b *tab) before(script string) {
	b.t.Helper()
	command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// as signs the tab in with a token, which is stored for the tab.
func (b *tab) as(token string) {
	b.t.Helper()
	b.before(fmt.Sprintf(
		`sessionStorage.setItem('freshet.session', JSON.stringify({kind: 'token', token: %q, keep: true}))`, token))
}

// visit opens a view and waits until it has loaded.
func (b *tab) visit(path string) {
	b.t.Helper()
	do(b, chromedp.Navigate(site+"/console/"+path))
	b.settled()
}

// settled waits until no loading indicator is shown.
func (b *tab) settled() {
	b.t.Helper()
	b.until(`document.querySelector('#main h1, .signin h1') && !document.querySelector('.skeleton, .boot')`)
}

// until waits for a condition on the page.
func (b *tab) until(condition string) {
	b.t.Helper()
	script := fmt.Sprintf(`new Promise((resolve, reject) => {
		const end = Date.now() + 30000
		const look = () => {
			let ok = false
			try { ok = %s } catch {}
			ok ? resolve(true) : Date.now() > end ? reject(new Error(%q)) : setTimeout(look, 20)
		}
		look()
	})`, condition, "waited for "+condition)
	for began := time.Now(); ; {
		_, err := chromedp.Run(b.ctx,
			chromedp.Evaluate[bool](script, func(p *runtime.EvaluateParams) { p.AwaitPromise = ptr(true) }))
		if err == nil {
			return
		}
		// Signing in navigates through several pages, so the script is restarted on the next page.
		if moved := strings.Contains(err.Error(), "navigated") || strings.Contains(err.Error(), "context"); !moved ||
			time.Since(began) > 30*time.Second {
			b.t.Fatalf("%v\npage: %s", err, b.pageText())
		}
	}
}

// waitText waits for a text on the page.
func (b *tab) waitText(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[T](expression, func(p *runtime.EvaluateParams) { p.AwaitPromise = ptr(true) }))
	if err != nil {
		b.t.Fatalf("%s: %v\npage: %s", expression, err, b.pageText())
	}
	return value
}

// button finds a button or link by its text, in the open dialog if there is one.
const button = `(text => [...(([...document.querySelectorAll('dialog[open]')].at(-1)) ?? document)
	.querySelectorAll('button, a, summary')].find(e =>
		(e.innerText.trim().replace(/\s*(Ctrl|⌘) K$/, '') || e.getAttribute('aria-label') || '') === text &&
		e.checkVisibility()))`

// click clicks the button or link with a text when it is enabled.
func (b *tab) click(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(b => b && !b.disabled)(%s(%q))`, button, text))
	eval[any](b, fmt.Sprintf(`void %s(%q).click()`, button, text))
}

// fill types a text into a field, by its name.
func (b *tab) fill(name, text string) {
	b.t.Helper()
	selector := fmt.Sprintf(`[name=%q], [aria-label=%q]`, name, name)
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].at(-1)`, selector))
	eval[any](b, fmt.Sprintf(
		`(e => {
			e.focus()
			e.value = %q
			e.dispatchEvent(new Event('input', {bubbles: true}))
			e.dispatchEvent(new Event('change', {bubbles: true}))
		})([...document.querySelectorAll(%q)].at(-1))`, text, selector))
}

// shoot saves a screenshot.
func (b *tab) shoot(name string) {
	b.t.Helper()
	image := do(b, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(screenshots, name+".png"), image, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
