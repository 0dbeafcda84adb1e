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

// maxName bounds what is typed for organization, name and password.
const maxName = 1 << 10

// showSignIn shows the form, or goes on when somebody has signed in already.
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

// tooFast is a refusal that says when to try again.
type tooFast struct{ wait time.Duration }

func (*tooFast) Error() string { return "there were too many attempts: wait a little, and try again" }
func (*tooFast) Unwrap() error { return errTooFast }

var errTooFast = errs.New(errs.Throttled, "too many attempts")

// signIn takes organization, name and password.
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

// mayTry counts an attempt before it is made, whether or not there is such an
// account: so many per address, so many per account from one address, and so many
// per account from everywhere. The last does not hold where somebody has signed in
// to the account, so that nobody locks its owner out from elsewhere.
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

// mayTryLink counts a look at something that is found by a secret.
func (a *API) mayTryLink(r *http.Request) error {
	if wait := a.addresses.Take(throttle.AddressKey(a.opts.Source(r))); wait > 0 {
		return &tooFast{wait}
	}
	return nil
}
