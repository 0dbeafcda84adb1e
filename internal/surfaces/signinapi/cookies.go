package signinapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
)

// The cookies: who has signed in; which browser it is, for forms; and what it has
// to bring back from a provider.
const (
	cookieSession = "freshet-session"
	cookieBrowser = "freshet-browser"
	cookieLogin   = "freshet-login"
)

const maxForm = 16 << 10

// secure says whether the browser speaks TLS, to us or to a proxy in front of us.
func (a *API) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	for _, origin := range a.opts.Origins {
		if host, ok := strings.CutPrefix(origin, "https://"); ok && strings.EqualFold(host, r.Host) {
			return true
		}
	}
	return false
}

// cookieName has the prefix with which browsers take a cookie from nobody but this
// host, over TLS.
func (a *API) cookieName(r *http.Request, name string) string {
	if a.secure(r) {
		return "__Host-" + name
	}
	return name
}

// setCookie gives the browser a cookie for the pages; an empty value takes it away.
// It comes along when another site leads here, which a provider does, and not with
// forms of other sites.
func (a *API) setCookie(w http.ResponseWriter, r *http.Request, name, value string, lifetime time.Duration) {
	path := "/oauth"
	if a.secure(r) {
		path = "/" // as the prefix of the name demands
	}
	c := &http.Cookie{
		Name: a.cookieName(r, name), Value: value, Path: path, MaxAge: int(lifetime / time.Second),
		HttpOnly: true, Secure: a.secure(r), SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func (a *API) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(a.cookieName(r, name))
	if err != nil {
		return ""
	}
	return c.Value
}

// session is who has signed in in the browser; nil for nobody.
func (a *API) session(r *http.Request) (*signin.Session, error) {
	cookie := a.cookie(r, cookieSession)
	if cookie == "" {
		return nil, nil //nolint:nilnil // see above
	}
	s, err := a.opts.People.SessionOf(r.Context(), cookie)
	if err != nil && errs.KindOf(err) == errs.Unauthenticated {
		return nil, nil //nolint:nilnil // see above
	}
	if s != nil {
		web.RecordOf(r.Context()).Principal = a.opts.People.Principal(s.Subject)
	}
	return s, err
}

// enter signs somebody in in the browser, out of whatever was open there: the
// cookie is a new one, so nobody who knew the old one comes along.
func (a *API) enter(w http.ResponseWriter, r *http.Request, of signin.Subject, method string) error {
	if old, err := a.session(r); err == nil && old != nil {
		if err := a.opts.People.EndSession(r.Context(), old.ID); err != nil {
			return err
		}
	}
	s, cookie, err := a.opts.People.BeginSession(r.Context(), of, method)
	if err != nil {
		return err
	}
	a.setCookie(w, r, cookieSession, cookie.Reveal(), time.Until(s.Ends))
	a.setCookie(w, r, cookieBrowser, "", 0)
	a.record(r, of, "signin", method, http.StatusOK)
	a.opts.Observe(method, "success")
	web.RecordOf(r.Context()).Principal = a.opts.People.Principal(of)
	return nil
}

// browser names the browser, and gives it a name if it has none.
func (a *API) browser(w http.ResponseWriter, r *http.Request) string {
	if known := a.cookie(r, cookieBrowser); len(known) >= 32 && len(known) <= 64 {
		return known
	}
	fresh := identity.GenerateSecret().Reveal()
	a.setCookie(w, r, cookieBrowser, fresh, 24*time.Hour)
	return fresh
}

// proof is what a form carries so that no other site can send it: it fits the
// browser and who has signed in there.
func (a *API) proof(browser, session string) string {
	return a.opts.Sealer.HashSecret(formSecret(browser, session))
}

func formSecret(browser, session string) identity.Secret {
	return identity.NewSecret("form\x00" + browser + "\x00" + session)
}

var (
	errForeignForm = errs.New(errs.Denied,
		"the form was sent from another site, or is too old: go back, reload the page and try again")
	errForm = errs.New(errs.Invalid, "the form is not well formed")
)

// form reads a form and makes sure that it is one of ours.
func (a *API) form(next func(http.ResponseWriter, *http.Request, url.Values) error) web.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := a.sameSite.Check(r); err != nil {
			return errForeignForm
		}
		body, err := web.ReadBody(r, maxForm)
		if err != nil {
			return err
		}
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return errForm
		}
		browser := a.cookie(r, cookieBrowser)
		if browser == "" || !a.opts.Sealer.CheckSecret(values.Get("proof"),
			formSecret(browser, a.cookie(r, cookieSession))) {
			return errForeignForm
		}
		return next(w, r, values)
	}
}

// seal hands something to the browser that it can neither read nor change, tied to
// a purpose and to the browser.
func (a *API) seal(what any, purpose, browser string) (string, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return "", err
	}
	sealed, err := a.opts.Sealer.Seal(text, []byte("signin/"+purpose+"/"+browser))
	if err != nil {
		return "", err
	}
	return encode(sealed), nil
}

func (a *API) open(text string, into any, purpose, browser string) bool {
	sealed, ok := decode(text)
	if !ok {
		return false
	}
	plain, err := a.opts.Sealer.Open(sealed, []byte("signin/"+purpose+"/"+browser))
	return err == nil && json.Unmarshal(plain, into) == nil
}
