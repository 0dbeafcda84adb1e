package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// browserKey is the key of a script's browser in its values.
type browserKey struct{}

// newBrowser returns a browser without a session.
func newBrowser() *http.Client {
	jar, _ := cookiejar.New(nil) // never fails
	return &http.Client{
		Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var proofField = regexp.MustCompile(`name="proof" value="([^"]*)"`)

// submit opens a page and sends its form.
func submit(browser *http.Client, page string, fields url.Values) (status int, err error) {
	status, body, err := send(browser.Get(page))
	if err != nil {
		return 0, err
	}
	proof := proofField.FindStringSubmatch(body)
	if proof == nil {
		return 0, fmt.Errorf("%s has no form (status %d)", page, status)
	}
	fields.Set("proof", html.UnescapeString(proof[1]))
	action, _, _ := strings.Cut(page, "?")
	status, _, err = send(browser.PostForm(action, fields))
	return status, err
}

func send(res *http.Response, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), errors.Join(err, res.Body.Close())
}

// query returns a query parameter of a URL.
func query(ts *testscript.TestScript, page, name string) string {
	u, err := url.Parse(page)
	ts.Check(err)
	return u.Query().Get(name)
}

func browserOf(ts *testscript.TestScript) *http.Client {
	browser, ok := ts.Value(browserKey{}).(*http.Client)
	if !ok {
		ts.Fatalf("the script has no browser")
	}
	return browser
}

// accept FILE sets a password for the user whose invitation is in the file, which also
// signs the user in.
func accept(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: accept FILE")
	}
	var link struct{ Status struct{ URL string } }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &link))
	const password = "a long password of somebody"
	status, err := submit(browserOf(ts), link.Status.URL,
		url.Values{"token": {query(ts, link.Status.URL, "token")}, "password": {password}, "repeated": {password}})
	ts.Check(err)
	if status != http.StatusSeeOther {
		ts.Fatalf("setting a password: got status %d, want 303", status)
	}
}

// decide PIPE approve|refuse reads the URL of the device page from a pipe, and approves or
// refuses the device there.
func decide(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: decide PIPE approve|refuse")
	}
	page := strings.TrimSpace(ts.ReadFile(args[0])) // returns when the writer closes the pipe
	status, err := submit(browserOf(ts), page,
		url.Values{"user_code": {query(ts, page, "user_code")}, "decision": {args[1]}})
	ts.Check(err)
	if status != http.StatusOK {
		ts.Fatalf("%s: got status %d, want 200", args[1], status)
	}
}
