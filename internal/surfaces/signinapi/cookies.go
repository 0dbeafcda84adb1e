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
	"freshet/internal/surfaces/throttle"
)

// The cookies.
const (
	cookieSession = "freshet-session" // the session
	cookieBrowser = "freshet-browser" // identifies the browser, for CSRF tokens
	cookieLogin   = "freshet-login"   // the sealed state of a login at an OpenID provider
)

const maxForm = 16 << 10

// secure reports whether the browser uses TLS, to this server or to a proxy in front of
// it.
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

// cookieName adds the prefix __Host- over TLS. Browsers accept such a cookie only from
// this host.
func (a *API) cookieName(r *http.Request, name string) string {
	if a.secure(r) {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie for the pages; an empty value deletes it. SameSite=Lax: the
// browser sends it when another site redirects here, as a provider does, but not with
// forms of other sites.
func (a *API) setCookie(w http.ResponseWriter, r *http.Request, name, value string, lifetime time.Duration) {
	path := "/oauth"
	if a.secure(r) {
		path = "/" // required by the prefix __Host-
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

// session returns the session of the browser; nil if it has none.
func (a *API) session(r *http.Request) (*signin.Session, error) {
	cookie := a.cookie(r, cookieSession)
	if cookie == "" {
		return nil, nil //nolint:nilnil // see above
	}
	s, err := a.opts.Sessions.SessionOf(r.Context(), cookie)
	if err != nil && errs.KindOf(err) == errs.Unauthenticated {
		return nil, nil //nolint:nilnil // see above
	}
	if s != nil {
		web.RecordOf(r.Context()).Principal = a.opts.Subjects.Principal(s.Subject)
	}
	return s, err
}

// startSession starts a session in the browser and ends the old one. The cookie is always a new
// one, which prevents session fixation.
func (a *API) startSession(w http.ResponseWriter, r *http.Request, subject signin.Subject, method string) error {
	if old, err := a.session(r); err == nil && old != nil {
		if err := a.opts.Sessions.EndSession(r.Context(), old.ID); err != nil {
			return err
		}
	}
	if err := a.opts.People.RememberAddress(r.Context(), subject, throttle.AddressKey(r.RemoteAddr)); err != nil {
		return err
	}
	s, cookie, err := a.opts.Sessions.BeginSession(r.Context(), subject, method)
	if err != nil {
		return err
	}
	a.setCookie(w, r, cookieSession, cookie.Reveal(), time.Until(s.Ends))
	a.setCookie(w, r, cookieBrowser, "", 0)
	a.record(r, subject, "signin", method, http.StatusOK)
	a.opts.Counter.Count(method, "success")
	web.RecordOf(r.Context()).Principal = a.opts.Subjects.Principal(subject)
	return nil
}

// browserID returns the id of the browser; it sets a new one if the browser has none.
func (a *API) browserID(w http.ResponseWriter, r *http.Request) string {
	if existing := a.cookie(r, cookieBrowser); len(existing) >= 32 && len(existing) <= 64 {
		return existing
	}
	fresh := identity.GenerateSecret().Reveal()
	a.setCookie(w, r, cookieBrowser, fresh, 24*time.Hour)
	return fresh
}

// csrfToken returns the CSRF token of a form. It is bound to the browser and its session, so
// that other sites cannot send the form.
func (a *API) csrfToken(browser, session string) string {
	return a.opts.Sealer.HashSecret(formSecret(browser, session))
}

func formSecret(browser, session string) identity.Secret {
	return identity.NewSecret("form\x00" + browser + "\x00" + session)
}

var (
	errForgedForm = errs.New(errs.Denied,
		"form was sent from another site or is too old; go back, reload the page and try again")
	errForm = errs.New(errs.Invalid, "form is malformed")
)

// form parses a form and checks its CSRF token.
func (a *API) form(next func(http.ResponseWriter, *http.Request, url.Values) error) web.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := a.sameSite.Check(r); err != nil {
			return errForgedForm
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
			return errForgedForm
		}
		return next(w, r, values)
	}
}

// seal encrypts and authenticates a value that the browser sends back, bound to a
// purpose and to the browser.
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
