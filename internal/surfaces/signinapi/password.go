package signinapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/throttle"
)

// maxName limits the organization, name and password fields, in bytes.
const maxName = 1 << 10

// showSignIn shows the form, or redirects to the next page if the browser has a session.
func (a *API) showSignIn(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	session, err := a.session(r)
	if err != nil {
		return err
	}
	if session != nil && query.Get("again") != "true" {
		return a.redirect(w, r, nextPage(query.Get("next")))
	}
	organization := query.Get("organization")
	if organization == "" || len(organization) > 63 {
		organization = a.opts.Organization
	}
	return a.signInForm(w, r, http.StatusOK, page{Next: query.Get("next"), Organization: organization})
}

// throttledError rejects an attempt that exceeds a rate limit. scope is what was limited, wait is
// the Retry-After time.
type throttledError struct {
	scope throttle.Scope
	wait  time.Duration
}

// perSession is the scope of the limit on the codes of devices.
const perSession throttle.Scope = "in this session"

func (e *throttledError) Error() string {
	return "too many attempts " + string(e.scope) + "; " + throttle.TryAgain(e.wait)
}

func (*throttledError) Unwrap() error { return errThrottled }

var errThrottled = errs.New(errs.Throttled, "too many attempts")

// signIn signs a user in with organization, name and password.
func (a *API) signIn(w http.ResponseWriter, r *http.Request, form url.Values) error {
	organization, userName, password := strings.TrimSpace(form.Get("organization")),
		strings.TrimSpace(form.Get("name")),
		form.Get("password")
	if len(organization) > maxName || len(userName) > maxName || len(password) > maxName {
		return errForm
	}
	formPage := page{Next: form.Get("next"), Organization: organization, Name: userName}
	address := throttle.AddressKey(r.RemoteAddr)
	if over := a.takeAttempt(organization, userName, address); !over.None() {
		a.opts.Counter.Count(signin.MethodPassword, "throttled")
		return a.showSignInError(w, r, &throttledError{over.Scope, over.Wait}, formPage)
	}
	subject, err := a.opts.Passwords.Authenticate(r.Context(), address, organization, userName, password)
	if errors.Is(err, signin.ErrWrongPassword) {
		a.record(r, subject, "signin", signin.MethodPassword, http.StatusUnauthorized)
		a.opts.Counter.Count(signin.MethodPassword, "failure")
		return a.showSignInError(w, r, err, formPage)
	}
	if err != nil {
		return err
	}
	if err := a.startSession(w, r, subject, signin.MethodPassword); err != nil {
		return err
	}
	return a.redirect(w, r, nextPage(form.Get("next")))
}

// takeAttempt counts an attempt to sign in with a password. The limits for other addresses use
// the typed name, because a limit that a name and an e-mail address share would reveal that both
// belong to one user.
func (a *API) takeAttempt(organization, userName, address string) throttle.Exceeded {
	if uid, known := a.opts.Passwords.KnowsAddress(organization, userName, address); known {
		return a.guard.TakeKnown("uid\x00"+uid, address)
	}
	return a.guard.Take(organization+"\x00"+strings.ToLower(userName), address)
}

// admitAttempt counts an attempt to use a secret in a link or form.
func (a *API) admitAttempt(r *http.Request) error {
	if over := a.guard.TakeAddress(throttle.AddressKey(r.RemoteAddr)); !over.None() {
		return &throttledError{over.Scope, over.Wait}
	}
	return nil
}
