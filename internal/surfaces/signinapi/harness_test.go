package signinapi_test

import (
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/signinapi"
)

// harness is a server with the pages, its audit records and its counts.
type harness struct {
	*signintest.World
	t      testing.TB
	server *httptest.Server

	handler atomic.Pointer[http.Handler]

	mu      sync.Mutex // protects records and counts
	records []audit.Record
	counts  map[string]int
}

func newHarness(t testing.TB, edit ...func(*signinapi.Options)) *harness {
	t.Helper()
	w := &harness{World: signintest.New(t), t: t, counts: map[string]int{}}
	w.server = httptest.NewUnstartedServer(nil)
	w.serve(edit...)
	w.server.Config.Handler = http.HandlerFunc(func(res http.ResponseWriter, r *http.Request) {
		(*w.handler.Load()).ServeHTTP(res, r)
	})
	w.server.Start()
	t.Cleanup(w.server.Close)
	return w
}

// restart continues with a new service and new pages over the same records.
func (w *harness) restart(edit ...func(*signinapi.Options)) {
	w.t.Helper()
	w.SignIn = w.Replica(w.Directory)
	w.serve(edit...)
}

// serve makes the server serve new pages.
func (w *harness) serve(edit ...func(*signinapi.Options)) {
	w.t.Helper()
	opts := signinapi.Options{
		Subjects: w.SignIn.Subjects, People: w.SignIn.People, Links: w.SignIn.Links, Passwords: w.SignIn.Passwords,
		Passkeys: w.SignIn.Passkeys, Sessions: w.SignIn.Sessions, Codes: w.SignIn.Codes, Devices: w.SignIn.Devices,
		Sealer: w.Sealer, Issuer: "https://issuer",
		Origins:      []string{"http://" + w.server.Listener.Addr().String()},
		Organization: "acme", Auditor: w, Counter: w,
	}
	for _, e := range edit {
		e(&opts)
	}
	api, err := signinapi.New(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	handler := fromAddress(web.Middleware(api, slog.New(slog.DiscardHandler), nil))
	w.handler.Store(&handler)
}

// addressHeader is the header of the address that a test sends a request from.
const addressHeader = "X-Test-Address"

// fromAddress serves requests with addressHeader as if they came from that address.
func fromAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address := r.Header.Get(addressHeader); address != "" {
			r.RemoteAddr = address + ":1"
		}
		next.ServeHTTP(w, r)
	})
}

// Record implements pipeline.Auditor.
func (w *harness) Record(r audit.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
}

// Count implements signinapi.Counter.
func (w *harness) Count(method, outcome string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[method+" "+outcome]++
}

// browser is an HTTP client that stores cookies and does not follow redirects.
type browser struct {
	*harness
	http      *http.Client
	csrfToken string // the CSRF token of the last form
}

func (w *harness) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{harness: w, http: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// response is a response with its body.
type response struct {
	status   int
	location string
	body     string
	header   http.Header
}

var csrfPattern = regexp.MustCompile(`name="proof" value="([^"]*)"`)

func (b *browser) do(r *http.Request) response {
	b.t.Helper()
	res, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if found := csrfPattern.FindSubmatch(body); found != nil {
		b.csrfToken = html.UnescapeString(string(found[1]))
	}
	return response{res.StatusCode, res.Header.Get("Location"), string(body), res.Header}
}

// request returns a request with the headers that a browser sends.
func (b *browser) request(method, path string, form url.Values) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.server.URL)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func (b *browser) get(path string) response {
	b.t.Helper()
	return b.do(b.request(http.MethodGet, path, nil))
}

// post submits a form with the CSRF token of the last page.
func (b *browser) post(path string, fields ...string) response {
	b.t.Helper()
	form := url.Values{"proof": {b.csrfToken}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.do(b.request(http.MethodPost, path, form))
}

// signIn submits the sign-in form.
func (b *browser) signIn(name, password string) response {
	b.t.Helper()
	b.get("/oauth/signin")
	return b.post("/oauth/signin", "organization", "acme", "name", name, "password", password)
}

// user adds a user with a password.
func (w *harness) user(name string) signin.Subject {
	w.t.Helper()
	subject := w.User("acme", name, name+"@example.com")
	w.Invite(subject)
	return subject
}

// session returns the value of the session cookie, "" if there is none.
func (b *browser) session() string {
	at, err := url.Parse(b.server.URL + "/oauth/signin")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(at) {
		if c.Name == "freshet-session" {
			return c.Value
		}
	}
	return ""
}

const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // from RFC 7636, appendix B

// authorize returns the path and query of the console's request. change are pairs of
// name and value; the value "-" removes a parameter.
func (w *harness) authorize(change ...string) string {
	q := url.Values{
		"client_id": {signin.ClientConsole}, "redirect_uri": {w.server.URL + "/console/"}, "response_type": {"code"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "state": {"s t"}, "nonce": {"n"},
	}
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == "-" {
			q.Del(change[i])
		} else {
			q.Set(change[i], change[i+1])
		}
	}
	return "/oauth/authorize?" + q.Encode()
}

// recorded reports whether there is an audit record of a verb with a status.
func (w *harness) recorded(verb string, status int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records {
		if r.Verb == verb && r.Status == status {
			return true
		}
	}
	return false
}

const week = 7 * 24 * time.Hour
