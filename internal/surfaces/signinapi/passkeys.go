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
)

// maxPasskeySessionAge is the maximum age of a session that may change passkeys. So an attacker who
// finds an unattended browser cannot add a passkey.
const maxPasskeySessionAge = 15 * time.Minute

var (
	errNoPasskeys = errs.New(errs.Invalid,
		"browsers do not support passkeys at this address; open the page at a host name with TLS, or at localhost")
	errNotRecent = errs.New(errs.Denied,
		"session is older than 15 minutes; sign in again to add or remove passkeys")
)

// parties returns the relying party (WebAuthn) of each origin at which browsers support
// passkeys.
func parties(origins []string) (map[string]*passkey.RelyingParty, error) {
	found := map[string]*passkey.RelyingParty{}
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

func (a *API) partyOf(r *http.Request) *passkey.RelyingParty { return a.parties[a.originOf(r)] }

// passkeyRequest is the part of a page that makes the browser create or use a passkey.
type passkeyRequest struct {
	Options string // WebAuthn options for the browser, in JSON
	Sealed  string // the sealed question, which the form sends back
}

// requestFor returns the ask for a question, bound to this browser and one purpose.
func (a *API) requestFor(q *passkey.Request, purpose, browser string) (*passkeyRequest, error) {
	sealed, err := a.seal(q, "passkey/"+purpose, browser)
	if err != nil {
		return nil, err
	}
	return &passkeyRequest{Options: string(q.Options), Sealed: sealed}, nil
}

// questionOf returns the question of a submitted form.
func (a *API) questionOf(r *http.Request, form url.Values,
	purpose string,
) (*passkey.RelyingParty, *passkey.Request, error) {
	party := a.partyOf(r)
	if party == nil {
		return nil, nil, errNoPasskeys
	}
	var q passkey.Request
	if !a.open(form.Get("asked"), &q, "passkey/"+purpose, a.cookie(r, cookieBrowser)) {
		return nil, nil, errForgedForm
	}
	if !time.Now().Before(q.ExpiresAt()) {
		return nil, nil, signin.ErrChallengeUsed
	}
	return party, &q, nil
}

// signInForm responds with the sign-in page. It has a passkey request if browsers
// support passkeys at this address.
func (a *API) signInForm(w http.ResponseWriter, r *http.Request, status int, p page) error {
	p.Template, p.Title = "signin", "Sign in"
	browser := a.browserID(w, r)
	if party := a.partyOf(r); party != nil {
		q, err := party.BeginSignIn()
		if err != nil {
			return err
		}
		if p.Ask, err = a.requestFor(q, "signin", browser); err != nil {
			return err
		}
	}
	return a.showTo(w, r, status, p, browser)
}

// signInPasskey signs a user in with a passkey. If the form has a name, the passkey must
// belong to that user.
func (a *API) signInPasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	organization, userName := strings.TrimSpace(form.Get("organization")), strings.TrimSpace(form.Get("name"))
	if len(organization) > maxName || len(userName) > maxName {
		return errForm
	}
	formPage := page{Next: form.Get("next"), Organization: organization, Name: userName}
	if formPage.Organization == "" {
		formPage.Organization = a.opts.Organization
	}
	if err := a.admitAttempt(r); err != nil {
		a.opts.Counter.Count(signin.MethodPasskey, "throttled")
		return a.showSignInError(w, r, err, formPage)
	}
	subject, err := a.checkPasskey(r, form, organization, userName)
	if kind := errs.KindOf(err); kind == errs.Unauthenticated {
		a.record(r, subject, "signin", signin.MethodPasskey, http.StatusUnauthorized)
		a.opts.Counter.Count(signin.MethodPasskey, "failure")
		return a.showSignInError(w, r, err, formPage)
	}
	if err != nil {
		return err
	}
	if err := a.startSession(w, r, subject, signin.MethodPasskey); err != nil {
		return err
	}
	return a.redirect(w, r, nextPage(form.Get("next")))
}

// checkPasskey returns the owner of the passkey that has signed the question of a form,
// and marks the challenge as used.
func (a *API) checkPasskey(r *http.Request, form url.Values, organization, userName string) (signin.Subject, error) {
	party, q, err := a.questionOf(r, form, "signin")
	if err != nil {
		return signin.Subject{}, err
	}
	passkeys, ctx := a.opts.Passkeys, r.Context()
	used, err := party.FinishSignIn(q, form.Get("credential"),
		func(uid string) (signin.Subject, []signin.Passkey, error) { return passkeys.PasskeysOf(ctx, uid) })
	if err != nil {
		return used.Subject, err
	}
	if userName != "" && !a.opts.Subjects.Matches(used.Subject, organization, userName) {
		return used.Subject, signin.ErrWrongPasskey
	}
	if err := passkeys.UseChallenge(ctx, q.Challenge(), q.ExpiresAt()); err != nil {
		return used.Subject, err
	}
	return used.Subject, passkeys.UsePasskey(ctx, used.Subject, used.ID, used.Count)
}

func (a *API) showSignInError(w http.ResponseWriter, r *http.Request, err error, formPage page) error {
	a.logError(r, err)
	formPage.Problem = sentence(err.Error())
	return a.signInForm(w, r, statusWithRetry(w, err), formPage)
}

// inviteForm responds with the page of an invitation.
func (a *API) inviteForm(w http.ResponseWriter, r *http.Request, status int, subject signin.Subject, token,
	problem string,
) error {
	p := page{
		Template: "invite", Title: "Welcome to Freshet", Token: token, Name: subject.Email,
		Organization: subject.Organization,
		MinPassword:  signin.MinPassword, Problem: problem,
	}
	ways, err := a.opts.People.CredentialsOf(r.Context(), subject)
	if err != nil {
		return err
	}
	p.Replaces = ways.Password || len(ways.Passkeys) > 0
	browser := a.browserID(w, r)
	if party := a.partyOf(r); party != nil {
		if p.Ask, err = a.requestNewPasskey(party, subject, nil, browser); err != nil {
			return err
		}
	} else {
		p.NamedURL = a.localhostURL(r)
	}
	return a.showTo(w, r, status, p, browser)
}

func (a *API) requestNewPasskey(party *passkey.RelyingParty, subject signin.Subject, has []signin.Passkey,
	browser string,
) (*passkeyRequest, error) {
	display, _ := a.opts.Subjects.Alive(subject)
	q, err := party.BeginRegistration(subject, display, has)
	if err != nil {
		return nil, err
	}
	return a.requestFor(q, "new/"+subject.UID, browser)
}

// localhostURL returns the URL of the same page at localhost, if the browser uses 127.0.0.1;
// otherwise "".
func (a *API) localhostURL(r *http.Request) string {
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

// newPasskey returns the new passkey of a form.
func (a *API) newPasskey(r *http.Request, form url.Values, subject signin.Subject) (signin.Passkey, error) {
	party, q, err := a.questionOf(r, form, "new/"+subject.UID)
	if err != nil {
		return signin.Passkey{}, err
	}
	key, err := party.FinishRegistration(q, subject, form.Get("credential"))
	if err != nil {
		return signin.Passkey{}, err
	}
	key.Name = form.Get("label")
	return key, a.opts.Passkeys.UseChallenge(r.Context(), q.Challenge(), q.ExpiresAt())
}

// acceptPasskey uses an invitation to set a passkey, and signs the user in.
func (a *API) acceptPasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	token := form.Get("token")
	subject, err := a.opts.Links.Invited(r.Context(), token)
	if err != nil {
		return a.recordLinkFailure(r, err, signin.MethodInvitation)
	}
	key, err := a.newPasskey(r, form, subject)
	if err == nil {
		subject, err = a.opts.Passkeys.AcceptPasskey(r.Context(), token, key)
	}
	switch {
	case errs.KindOf(err) == errs.Invalid || errors.Is(err, signin.ErrChallengeUsed):
		a.logError(r, err)
		return a.inviteForm(w, r, http.StatusUnprocessableEntity, subject, token, sentence(err.Error()))
	case err != nil:
		return a.recordLinkFailure(r, err, signin.MethodInvitation)
	}
	if err := a.startSession(w, r, subject, signin.MethodInvitation); err != nil {
		return err
	}
	return a.redirect(w, r, pathConsole)
}
