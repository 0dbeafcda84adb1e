package signinapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/signin"
)

// loginLifetime is how long a login at the provider may take.
const loginLifetime = 10 * time.Minute

// loginState is the state of a login at the provider. The browser has it in a sealed cookie.
type loginState struct {
	Login openid.Login `json:"login"`
	Next  string       `json:"next"`
	Ends  time.Time    `json:"ends"`
}

var errNoProvider = errs.New(errs.NotFound, "server has no OpenID provider; sign in with a password")

// beginProvider redirects the browser to the provider.
func (a *API) beginProvider(w http.ResponseWriter, r *http.Request) error {
	if a.opts.Provider == nil {
		return errNoProvider
	}
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	address, login, err := a.opts.Provider.Begin(r.Context())
	if err != nil {
		return err
	}
	sealed, err := a.seal(loginState{
		Login: login, Next: nextPage(r.URL.Query().Get("next")),
		Ends: time.Now().Add(loginLifetime),
	}, "login", "")
	if err != nil {
		return err
	}
	a.setCookie(w, r, cookieLogin, sealed, loginLifetime)
	return a.redirect(w, r, address)
}

// callback handles the redirect back from the provider. Its state must match the login
// in the cookie of this browser.
func (a *API) callback(w http.ResponseWriter, r *http.Request) error {
	if a.opts.Provider == nil {
		return errNoProvider
	}
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	query := r.URL.Query()
	var state loginState
	if !a.open(a.cookie(r, cookieLogin), &state, "login", "") || !time.Now().Before(state.Ends) {
		return openid.ErrNotConfirmed
	}
	a.setCookie(w, r, cookieLogin, "", 0)
	email, err := a.opts.Provider.Finish(r.Context(), state.Login, query.Get("state"), query.Get("code"))
	if err != nil {
		if kind := errs.KindOf(err); kind == errs.Unauthenticated || kind == errs.Denied {
			a.record(r, signin.Subject{}, "signin", signin.MethodProvider, http.StatusUnauthorized)
			a.opts.Counter.Count(signin.MethodProvider, "failure")
		}
		return err
	}
	return a.signInByEmail(w, r, email, state.Next)
}

// choiceState is the state of a user of several organizations who chooses one. The form has
// it sealed.
type choiceState struct {
	Email string    `json:"email"`
	Next  string    `json:"next"`
	Ends  time.Time `json:"ends"`
}

// signInByEmail signs in the user with an e-mail address. If users of several organizations
// have the address, it shows a page to choose one.
func (a *API) signInByEmail(w http.ResponseWriter, r *http.Request, email, next string) error {
	found := a.opts.Subjects.UsersByVerifiedEmail(email)
	switch len(found) {
	case 0:
		a.record(r, signin.Subject{}, "signin", signin.MethodProvider, http.StatusUnauthorized)
		a.opts.Counter.Count(signin.MethodProvider, "failure")
		return errNoUser
	case 1:
		if err := a.startSession(w, r, found[0], signin.MethodProvider); err != nil {
			return err
		}
		return a.redirect(w, r, next)
	}
	browser := a.browserID(w, r)
	sealed, err := a.seal(choiceState{Email: email, Next: next, Ends: time.Now().Add(loginLifetime)}, "choice", browser)
	if err != nil {
		return err
	}
	return a.showTo(w, r, http.StatusOK,
		page{Template: "choose", Title: "Choose an organization", Token: sealed, Subjects: found}, browser)
}

var errNoUser = errs.New(errs.Denied, "no user of this server has the e-mail address that the OpenID provider "+
	"confirmed; ask an administrator of your organization to create a user")

// choose signs in the chosen user.
func (a *API) choose(w http.ResponseWriter, r *http.Request, form url.Values) error {
	var chosen choiceState
	if !a.open(form.Get("token"), &chosen, "choice", a.cookie(r, cookieBrowser)) || !time.Now().Before(chosen.Ends) {
		return errForgedForm
	}
	for _, subject := range a.opts.Subjects.UsersByVerifiedEmail(chosen.Email) {
		if subject.UID == form.Get("uid") {
			if err := a.startSession(w, r, subject, signin.MethodProvider); err != nil {
				return err
			}
			return a.redirect(w, r, nextPage(chosen.Next))
		}
	}
	return errNoUser
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func decode(text string) ([]byte, bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	return data, err == nil && len(data) > 0
}
