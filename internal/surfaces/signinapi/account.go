package signinapi

import (
	"net/http"
	"net/url"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/pipeline"
)

// showAccount shows the signed-in user with its password state and passkeys.
func (a *API) showAccount(w http.ResponseWriter, r *http.Request) error {
	return a.accountPage(w, r, http.StatusOK, "")
}

// passkeyRow is a passkey on the account page.
type passkeyRow struct {
	signin.Passkey
	ID        string // encoded for forms
	Elsewhere bool   // the passkey is for another host name of this server
}

func (a *API) accountPage(w http.ResponseWriter, r *http.Request, status int, problem string) error {
	session, err := a.session(r)
	if err != nil {
		return err
	}
	if session == nil {
		return a.redirect(w, r, pathSignIn+"?"+url.Values{"next": {pathAccount}}.Encode())
	}
	subject := session.Subject
	p := page{
		Template: "account", Title: "Your account", Display: session.Display, Organization: subject.Organization,
		Session: session, Problem: problem,
		Person: subject.User != "", Recent: time.Since(session.Begun) < maxPasskeySessionAge,
	}
	browser := a.browserID(w, r)
	if p.Person {
		ways, err := a.opts.People.CredentialsOf(r.Context(), subject)
		if err != nil {
			return err
		}
		p.Password = ways.Password
		party := a.partyOf(r)
		for _, k := range ways.Passkeys {
			p.Passkeys = append(p.Passkeys,
				passkeyRow{Passkey: k, ID: encode(k.ID), Elsewhere: party == nil || k.Host != party.Host()})
		}
		if party == nil {
			p.NamedURL = a.localhostURL(r)
		} else if p.Recent {
			if p.Ask, err = a.requestNewPasskey(party, subject, ways.Passkeys, browser); err != nil {
				return err
			}
		}
	}
	return a.showTo(w, r, status, p, browser)
}

// recentSession returns the session if it may change the user's passkeys: its user has signed
// in recently.
func (a *API) recentSession(r *http.Request) (*signin.Session, error) {
	session, err := a.session(r)
	switch {
	case err != nil:
		return nil, err
	case session == nil || session.Subject.User == "":
		return nil, signin.ErrNoSession
	case time.Since(session.Begun) >= maxPasskeySessionAge:
		return nil, errNotRecent
	}
	return session, a.admitAttempt(r)
}

// addPasskey adds a passkey to the user.
func (a *API) addPasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	session, err := a.recentSession(r)
	if err != nil {
		return err
	}
	key, err := a.newPasskey(r, form, session.Subject)
	if err == nil {
		err = a.opts.Passkeys.AddPasskey(r.Context(), session.Subject, key)
	}
	return a.showPasskeyChange(w, r, session, "create", err)
}

// removePasskey removes a passkey of the user.
func (a *API) removePasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	session, err := a.recentSession(r)
	if err != nil {
		return err
	}
	id, ok := decode(form.Get("passkey"))
	if !ok {
		return errForm
	}
	return a.showPasskeyChange(w, r, session, "delete", a.opts.Passkeys.RemovePasskey(r.Context(), session, id))
}

// showPasskeyChange writes an audit record of a changed passkey and shows the account page,
// with the error if the change failed.
func (a *API) showPasskeyChange(w http.ResponseWriter, r *http.Request, session *signin.Session, verb string,
	err error,
) error {
	status := http.StatusOK
	if err != nil {
		status = statusWithRetry(w, err)
	}
	rec := pipeline.Record(r, surfaceName, nil, pipeline.Authorization{}, status)
	rec.Verb, rec.Resource = verb, "passkeys"
	rec.Organization, rec.Principal = session.Subject.Organization, a.opts.Subjects.Principal(session.Subject)
	a.opts.Auditor.Record(rec)
	switch kind := errs.KindOf(err); {
	case err == nil:
		return a.redirect(w, r, pathAccount)
	case kind == errs.Internal || kind == errs.Unavailable:
		return err
	}
	a.logError(r, err)
	return a.accountPage(w, r, status, sentence(err.Error()))
}

// logError adds the error of a form to the request's log record.
func (a *API) logError(r *http.Request, err error) { web.RecordOf(r.Context()).Fail(err) }
