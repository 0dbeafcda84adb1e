package signinapi

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/pipeline"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed pages/signin.css
var style []byte

//go:embed pages/passkeys.js
var script []byte

var pages = template.Must(template.New("pages").Funcs(template.FuncMap{
	"day":   func(t time.Time) string { return t.UTC().Format("2 Jan 2006") },
	"clock": func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
}).ParseFS(pageFiles, "pages/*.html"))

// page is the data of a page.
type page struct {
	Template     string
	Title        string
	Problem      string // error of the submitted form
	Text         string
	Organization string
	Name         string
	Display      string
	Next         string
	Token        string
	MinPassword  int
	Device       *signin.Device
	Session      *signin.Session
	Subjects     []signin.Subject
	SignInAgain  bool
	RequestID    string

	Ask      *passkeyRequest // the passkey request for the browser; nil: none
	NamedURL string          // this page at localhost, if browsers do not support passkeys at this address
	Replaces bool            // the invitation replaces an existing password or passkey
	Person   bool            // a user, not a service account
	Recent   bool            // the user has signed in recently
	Password bool            // the user has a password
	Passkeys []passkeyRow

	// set by showTo
	Proof    string
	Provider string
	Nonce    string // allows the script of the page, and no other, in the Content-Security-Policy
}

// show responds with a page. Its forms have the CSRF token of the browser.
func (a *API) show(w http.ResponseWriter, r *http.Request, status int, p page) error {
	return a.showTo(w, r, status, p, a.browserID(w, r))
}

func (a *API) showTo(w http.ResponseWriter, r *http.Request, status int, p page, browser string) error {
	p.Proof = a.csrfToken(browser, a.cookie(r, cookieSession))
	if a.opts.Provider != nil {
		p.Provider = a.opts.ProviderName
	}
	if p.Ask != nil {
		p.Nonce = identity.GenerateSecret().Reveal()
	}
	var body bytes.Buffer
	if err := pages.ExecuteTemplate(&body, p.Template+".html", p); err != nil {
		return fmt.Errorf("rendering the page %s: %w", p.Template, err)
	}
	a.setSecurityHeaders(w)
	if p.Ask != nil {
		w.Header().Set("Content-Security-Policy", a.policy+"; script-src 'nonce-"+p.Nonce+"'")
	}
	web.WriteBody(w, status, "text/html; charset=utf-8", body.Bytes())
	return nil
}

// setSecurityHeaders sets the security headers of every response: no caching, no framing, no
// referrer.
func (a *API) setSecurityHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", a.policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// serveFile serves a static file of the pages.
func (a *API) serveFile(kind string, content []byte) web.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		h := w.Header()
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("X-Content-Type-Options", "nosniff")
		web.WriteBody(w, http.StatusOK, kind, content)
		return nil
	}
}

// statuses is the surface's one table from errors to HTTP statuses.
var statuses = map[errs.Kind]int{
	errs.Internal:        http.StatusInternalServerError,
	errs.Invalid:         http.StatusBadRequest,
	errs.Unauthenticated: http.StatusUnauthorized,
	errs.Denied:          http.StatusForbidden,
	errs.NotFound:        http.StatusNotFound,
	errs.Conflict:        http.StatusConflict,
	errs.Precondition:    http.StatusPreconditionFailed,
	errs.TooLarge:        http.StatusRequestEntityTooLarge,
	errs.Unavailable:     http.StatusServiceUnavailable,
	errs.Exhausted:       http.StatusForbidden,
	errs.Throttled:       http.StatusTooManyRequests,
}

// statusOf returns the status of an error.
func statusOf(err error) int {
	status := statuses[errs.KindOf(err)]
	var refusal *web.Refusal
	switch {
	case errors.As(err, &refusal):
		status = refusal.Status
	case errors.Is(err, errMethod):
		status = http.StatusMethodNotAllowed
	case errors.Is(err, web.ErrBodyTimeout):
		status = http.StatusRequestTimeout
	case errors.Is(err, signin.ErrLinkUsed):
		status = http.StatusGone
	}
	return status
}

// statusWithRetry returns the status of an error and sets Retry-After if the error is
// temporary.
func statusWithRetry(w http.ResponseWriter, err error) int {
	status := statusOf(err)
	var fast *throttledError
	switch {
	case errors.As(err, &fast):
		w.Header().Set("Retry-After", pipeline.RetryAfterDelay(fast.wait))
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "2")
	}
	return status
}

// errorPages implements pipeline.ErrorTable with pages.
type errorPages struct{ api *API }

// Status implements pipeline.ErrorTable.
func (errorPages) Status(err error) int { return statusOf(err) }

// Write implements pipeline.ErrorTable.
func (e errorPages) Write(c *pipeline.Call, err error, _ int) {
	if c.Allow != "" {
		c.W.Header().Set("Allow", c.Allow)
	}
	e.api.writeError(c.W, c.R, err)
}

// writeError responds with a page about an error. All errors of the surface are written
// here.
func (a *API) writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusWithRetry(w, err)
	text := err.Error()
	switch {
	case status == http.StatusInternalServerError:
		text = "internal error; the server's log has the details under the request id below"
	case errors.Is(err, openid.ErrUnavailable):
		text = openid.ErrUnavailable.Error() // without the details, which the log has
	case errors.Is(err, openid.ErrNotConfirmed):
		text = openid.ErrNotConfirmed.Error()
	case status == http.StatusServiceUnavailable && !errors.Is(err, signin.ErrBusy):
		text = "server is temporarily unavailable; try again in a few seconds"
	}
	p := page{
		Template: "message", Title: "Something went wrong", Text: sentence(text), SignInAgain: true,
		RequestID: web.RecordOf(r.Context()).RequestID,
	}
	if showErr := a.show(w, r, status, p); showErr != nil {
		web.RecordOf(r.Context()).Fail(errors.Join(err, showErr))
		http.Error(w, http.StatusText(status), status)
	}
}

// sentence converts the text of an error to a sentence.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
