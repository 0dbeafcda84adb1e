package signinapi

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/signin"
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

// page is what a page shows.
type page struct {
	Template     string
	Title        string
	Problem      string // what was wrong with the form before
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

	Ask      *ask   // what the browser is to ask a device for; nil: nothing
	NamedURL string // the page where browsers have passkeys, when they have none here
	Replaces bool   // an invitation replaces what there is
	Person   bool   // and not an account
	Recent   bool   // has signed in just now
	Password bool   // has one
	Passkeys []keyRow

	// set by show
	Proof    string
	Provider string
	Nonce    string // lets the script of the page run, and no other
}

// show writes a page whose forms fit the browser that asks for it.
func (a *API) show(w http.ResponseWriter, r *http.Request, status int, p page) error {
	return a.showTo(w, r, status, p, a.browser(w, r))
}

func (a *API) showTo(w http.ResponseWriter, r *http.Request, status int, p page, browser string) error {
	p.Proof = a.proof(browser, a.cookie(r, cookieSession))
	if a.opts.Provider != nil {
		p.Provider = a.opts.ProviderName
	}
	if p.Ask != nil {
		p.Nonce = identity.GenerateSecret().Reveal()
	}
	var body bytes.Buffer
	if err := pages.ExecuteTemplate(&body, p.Template+".html", p); err != nil {
		return fmt.Errorf("making the page %s: %w", p.Template, err)
	}
	a.harden(w)
	if p.Ask != nil {
		w.Header().Set("Content-Security-Policy", a.policy+"; script-src 'nonce-"+p.Nonce+"'")
	}
	web.WriteBody(w, status, "text/html; charset=utf-8", body.Bytes())
	return nil
}

// harden sets what every answer has: nothing of it is kept, framed, or told to
// others.
func (a *API) harden(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", a.policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// serveFile serves what pages load.
func (a *API) serveFile(kind string, content []byte) web.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		h := w.Header()
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("X-Content-Type-Options", "nosniff")
		web.WriteBody(w, http.StatusOK, kind, content)
		return nil
	}
}

// statuses is the table for errors.
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

// statusOf is the status of a refusal, with its headers.
func statusOf(w http.ResponseWriter, err error) int {
	status := statuses[errs.KindOf(err)]
	var refusal *web.Refusal
	var fast *tooFast
	switch {
	case errors.As(err, &refusal):
		status = refusal.Status
	case errors.As(err, &fast):
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(fast.wait.Seconds())))))
	case errors.Is(err, errMethod):
		status = http.StatusMethodNotAllowed
	case errors.Is(err, web.ErrBodyTimeout):
		status = http.StatusRequestTimeout
	case errors.Is(err, signin.ErrLinkUsed):
		status = http.StatusGone
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "2")
	}
	return status
}

// writeError is the surface's one way to fail: a page that says what happened and
// what to do.
func (a *API) writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(w, err)
	text := err.Error()
	switch {
	case status == http.StatusInternalServerError:
		text = "something is wrong with the server: its log has the details under the request id below"
	case errors.Is(err, openid.ErrUnavailable):
		text = openid.ErrUnavailable.Error() // the details are for the log
	case errors.Is(err, openid.ErrNotProven):
		text = openid.ErrNotProven.Error()
	case status == http.StatusServiceUnavailable && !errors.Is(err, signin.ErrBusy):
		text = "the server cannot do this at the moment: try again in a few seconds"
	}
	p := page{
		Template: "message", Title: "That did not work", Text: sentence(text), SignInAgain: true,
		RequestID: web.RecordOf(r.Context()).RequestID,
	}
	if showErr := a.show(w, r, status, p); showErr != nil {
		web.RecordOf(r.Context()).Fail(errors.Join(err, showErr))
		http.Error(w, http.StatusText(status), status)
	}
}

// sentence makes one of an error.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
