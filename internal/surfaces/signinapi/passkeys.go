package signinapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity/passkey"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/throttle"
)

// recent is the maximum age of a session that may change passkeys. So an attacker who
// finds an unattended browser cannot add a passkey.
const recent = 15 * time.Minute

var (
	errNoPasskeys = errs.New(errs.Invalid,
		"browsers do not support passkeys at this address; open the page at a host name with TLS, or at localhost")
	errNotRecent = errs.New(errs.Denied,
		"session is older than 15 minutes; sign in again to add or remove passkeys")
)

// parties returns the relying party (WebAuthn) of each origin at which browsers support
// passkeys.
func parties(origins []string) (map[string]*passkey.Party, error) {
	found := map[string]*passkey.Party{}
	for _, origin := range origins {
		party, err := passkey.New(origin)
		if err != nil {
			return nil, err
		}
		if party != nil {
			found[strings.ToLower(origin)] = party
		}
	}
	return found, nil
}

// originOf returns the origin of this server that the browser uses.
func (a *API) originOf(r *http.Request) string {
	scheme := "http://"
	if a.secure(r) {
		scheme = "https://"
	}
	return scheme + strings.ToLower(r.Host)
}

func (a *API) party(r *http.Request) *passkey.Party { return a.parties[a.originOf(r)] }

// ask is the part of a page that makes the browser create or use a passkey.
type ask struct {
	Options string // WebAuthn options for the browser, in JSON
	Sealed  string // the sealed question, which the form sends back
}

// askFor returns the ask for a question, bound to this browser and one purpose.
func (a *API) askFor(q *passkey.Question, purpose, browser string) (*ask, error) {
	sealed, err := a.seal(q, "passkey/"+purpose, browser)
	if err != nil {
		return nil, err
	}
	return &ask{Options: string(q.Options), Sealed: sealed}, nil
}

// asked returns the question of a submitted form.
func (a *API) asked(r *http.Request, form url.Values, purpose string) (*passkey.Party, *passkey.Question, error) {
	party := a.party(r)
	if party == nil {
		return nil, nil, errNoPasskeys
	}
	var q passkey.Question
	if !a.open(form.Get("asked"), &q, "passkey/"+purpose, a.cookie(r, cookieBrowser)) {
		return nil, nil, errForeignForm
	}
	if !time.Now().Before(q.Ends()) {
		return nil, nil, signin.ErrChallengeUsed
	}
	return party, &q, nil
}

// signInForm responds with the sign-in page. It has a passkey request if browsers
// support passkeys at this address.
func (a *API) signInForm(w http.ResponseWriter, r *http.Request, status int, p page) error {
	p.Template, p.Title = "signin", "Sign in"
	browser := a.browser(w, r)
	if party := a.party(r); party != nil {
		q, err := party.Ask()
		if err != nil {
			return err
		}
		if p.Ask, err = a.askFor(q, "signin", browser); err != nil {
			return err
		}
	}
	return a.showTo(w, r, status, p, browser)
}

// signInPasskey signs a user in with a passkey. If the form has a name, the passkey must
// belong to that user.
func (a *API) signInPasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	organization, who := strings.TrimSpace(form.Get("organization")), strings.TrimSpace(form.Get("name"))
	if len(organization) > maxName || len(who) > maxName {
		return errForm
	}
	again := page{Next: form.Get("next"), Organization: organization, Name: who}
	if again.Organization == "" {
		again.Organization = a.opts.Organization
	}
	if wait := a.addresses.Take(throttle.AddressKey(a.opts.Source(r))); wait > 0 {
		a.opts.Observe(signin.MethodPasskey, "throttled")
		return a.refuseSignIn(w, r, &tooFast{wait}, again)
	}
	of, err := a.checkPasskey(r, form, organization, who)
	if kind := errs.KindOf(err); kind == errs.Unauthenticated {
		a.record(r, of, "signin", signin.MethodPasskey, http.StatusUnauthorized)
		a.opts.Observe(signin.MethodPasskey, "failure")
		return a.refuseSignIn(w, r, err, again)
	}
	if err != nil {
		return err
	}
	if err := a.enter(w, r, of, signin.MethodPasskey); err != nil {
		return err
	}
	return a.goTo(w, r, next(form.Get("next")))
}

// checkPasskey returns the owner of the passkey that has signed the question of a form,
// and marks the challenge as used.
func (a *API) checkPasskey(r *http.Request, form url.Values, organization, who string) (signin.Subject, error) {
	party, q, err := a.asked(r, form, "signin")
	if err != nil {
		return signin.Subject{}, err
	}
	people, ctx := a.opts.People, r.Context()
	used, err := party.Check(q, form.Get("credential"),
		func(uid string) (signin.Subject, []signin.Passkey, error) { return people.PasskeysOf(ctx, uid) })
	if err != nil {
		return used.Of, err
	}
	if who != "" && !people.Is(used.Of, organization, who) {
		return used.Of, signin.ErrWrongPasskey
	}
	if err := people.UseChallenge(ctx, q.Challenge(), q.Ends()); err != nil {
		return used.Of, err
	}
	return used.Of, people.UsePasskey(ctx, used.Of, used.ID, used.Count)
}

func (a *API) refuseSignIn(w http.ResponseWriter, r *http.Request, err error, again page) error {
	a.note(r, err)
	again.Problem = sentence(err.Error())
	return a.signInForm(w, r, statusOf(w, err), again)
}

// inviteForm responds with the page of an invitation.
func (a *API) inviteForm(w http.ResponseWriter, r *http.Request, status int, of signin.Subject, token,
	problem string,
) error {
	p := page{
		Template: "invite", Title: "Welcome to Freshet", Token: token, Name: of.Email, Organization: of.Organization,
		MinPassword: signin.MinPassword, Problem: problem,
	}
	ways, err := a.opts.People.WaysOf(r.Context(), of)
	if err != nil {
		return err
	}
	p.Replaces = ways.Password || len(ways.Passkeys) > 0
	browser := a.browser(w, r)
	if party := a.party(r); party != nil {
		if p.Ask, err = a.askNew(party, of, nil, browser); err != nil {
			return err
		}
	} else {
		p.NamedURL = a.named(r)
	}
	return a.showTo(w, r, status, p, browser)
}

func (a *API) askNew(party *passkey.Party, of signin.Subject, has []signin.Passkey, browser string) (*ask, error) {
	display, _ := a.opts.People.Alive(of)
	q, err := party.AskNew(of, display, has)
	if err != nil {
		return nil, err
	}
	return a.askFor(q, "new/"+of.UID, browser)
}

// named returns the URL of the same page at localhost, if the browser uses 127.0.0.1;
// otherwise "".
func (a *API) named(r *http.Request) string {
	_, port, ok := strings.Cut(r.Host, ":")
	if !ok || !strings.HasPrefix(r.Host, "127.0.0.1:") {
		return ""
	}
	origin := strings.TrimSuffix(a.originOf(r), strings.ToLower(r.Host)) + "localhost:" + port
	if a.parties[origin] == nil {
		return ""
	}
	return origin + r.URL.RequestURI()
}

// made returns the new passkey of a form.
func (a *API) made(r *http.Request, form url.Values, of signin.Subject) (signin.Passkey, error) {
	party, q, err := a.asked(r, form, "new/"+of.UID)
	if err != nil {
		return signin.Passkey{}, err
	}
	key, err := party.New(q, of, form.Get("credential"))
	if err != nil {
		return signin.Passkey{}, err
	}
	key.Name = form.Get("label")
	return key, a.opts.People.UseChallenge(r.Context(), q.Challenge(), q.Ends())
}

// acceptPasskey uses an invitation to set a passkey, and signs the user in.
func (a *API) acceptPasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	if err := a.mayTryLink(r); err != nil {
		return err
	}
	token := form.Get("token")
	of, err := a.opts.People.Invited(r.Context(), token)
	if err != nil {
		return a.refuseLink(r, err, signin.MethodInvitation)
	}
	key, err := a.made(r, form, of)
	if err == nil {
		of, err = a.opts.People.AcceptPasskey(r.Context(), token, key)
	}
	switch {
	case errs.KindOf(err) == errs.Invalid || errors.Is(err, signin.ErrChallengeUsed):
		a.note(r, err)
		return a.inviteForm(w, r, http.StatusUnprocessableEntity, of, token, sentence(err.Error()))
	case err != nil:
		return a.refuseLink(r, err, signin.MethodInvitation)
	}
	if err := a.enter(w, r, of, signin.MethodInvitation); err != nil {
		return err
	}
	return a.goTo(w, r, pathConsole)
}
