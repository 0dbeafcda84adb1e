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
		return a.goTo(w, r, next(query.Get("next")))
	}
	organization := query.Get("organization")
	if organization == "" || len(organization) > 63 {
		organization = a.opts.Organization
	}
	return a.signInForm(w, r, http.StatusOK, page{Next: query.Get("next"), Organization: organization})
}

// tooFast rejects an attempt that exceeds a rate limit; wait is the Retry-After time.
type tooFast struct{ wait time.Duration }

func (*tooFast) Error() string { return "too many attempts; wait a moment and try again" }
func (*tooFast) Unwrap() error { return errTooFast }

var errTooFast = errs.New(errs.Throttled, "too many attempts")

// signIn signs a user in with organization, name and password.
func (a *API) signIn(w http.ResponseWriter, r *http.Request, form url.Values) error {
	organization, who, password := strings.TrimSpace(form.Get("organization")), strings.TrimSpace(form.Get("name")),
		form.Get("password")
	if len(organization) > maxName || len(who) > maxName || len(password) > maxName {
		return errForm
	}
	again := page{Next: form.Get("next"), Organization: organization, Name: who}
	account := organization + "\x00" + strings.ToLower(who)
	address := throttle.AddressKey(a.opts.Source(r))
	if err := a.mayTry(account, address); err != nil {
		a.opts.Observe(signin.MethodPassword, "throttled")
		return a.refuseSignIn(w, r, err, again)
	}
	of, err := a.opts.People.Authenticate(r.Context(), organization, who, password)
	if errors.Is(err, signin.ErrWrongPassword) {
		a.record(r, of, "signin", signin.MethodPassword, http.StatusUnauthorized)
		a.opts.Observe(signin.MethodPassword, "failure")
		return a.refuseSignIn(w, r, err, again)
	}
	if err != nil {
		return err
	}
	a.owners.Add(account+"\x00"+address, struct{}{}, 1)
	if err := a.enter(w, r, of, signin.MethodPassword); err != nil {
		return err
	}
	return a.goTo(w, r, next(form.Get("next")))
}

// mayTry counts an attempt before it is made, whether or not the account exists. There
// are three limits: per address, per account and address, and per account over all
// addresses. The last limit does not apply to an address with an earlier sign-in to the
// account, so that an attacker at other addresses cannot lock the user out.
func (a *API) mayTry(account, address string) error {
	wait := a.addresses.Take(address)
	if wait == 0 {
		wait = a.accounts.Take(account + "\x00" + address)
	}
	if _, owner := a.owners.Get(account + "\x00" + address); wait == 0 && !owner {
		wait = a.guesses.Take(account)
	}
	if wait > 0 {
		return &tooFast{wait}
	}
	return nil
}

// mayTryLink counts an attempt to use a secret in a link or form.
func (a *API) mayTryLink(r *http.Request) error {
	if wait := a.addresses.Take(throttle.AddressKey(a.opts.Source(r))); wait > 0 {
		return &tooFast{wait}
	}
	return nil
}
