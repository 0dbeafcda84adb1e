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

// keyRow is a passkey on the account page.
type keyRow struct {
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
		return a.goTo(w, r, pathSignIn+"?"+url.Values{"next": {pathAccount}}.Encode())
	}
	of := session.Subject
	p := page{
		Template: "account", Title: "Your account", Display: session.Display, Organization: of.Organization,
		Session: session, Problem: problem,
		Person: of.User != "", Recent: time.Since(session.Begun) < recent,
	}
	browser := a.browser(w, r)
	if p.Person {
		ways, err := a.opts.People.WaysOf(r.Context(), of)
		if err != nil {
			return err
		}
		p.Password = ways.Password
		party := a.party(r)
		for _, k := range ways.Passkeys {
			p.Passkeys = append(p.Passkeys,
				keyRow{Passkey: k, ID: encode(k.ID), Elsewhere: party == nil || k.Host != party.Host()})
		}
		if party == nil {
			p.NamedURL = a.named(r)
		} else if p.Recent {
			if p.Ask, err = a.askNew(party, of, ways.Passkeys, browser); err != nil {
				return err
			}
		}
	}
	return a.showTo(w, r, status, p, browser)
}

// ownWay returns the session if it may change the user's passkeys: its user has signed
// in recently.
func (a *API) ownWay(r *http.Request) (*signin.Session, error) {
	session, err := a.session(r)
	switch {
	case err != nil:
		return nil, err
	case session == nil || session.Subject.User == "":
		return nil, signin.ErrNoSession
	case time.Since(session.Begun) >= recent:
		return nil, errNotRecent
	}
	return session, a.mayTryLink(r)
}

// addPasskey adds a passkey to the user.
func (a *API) addPasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	session, err := a.ownWay(r)
	if err != nil {
		return err
	}
	key, err := a.made(r, form, session.Subject)
	if err == nil {
		err = a.opts.People.AddPasskey(r.Context(), session.Subject, key)
	}
	return a.changedWays(w, r, session, "create", err)
}

// removePasskey removes a passkey of the user.
func (a *API) removePasskey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	session, err := a.ownWay(r)
	if err != nil {
		return err
	}
	id, ok := decode(form.Get("passkey"))
	if !ok {
		return errForm
	}
	return a.changedWays(w, r, session, "delete", a.opts.People.RemovePasskey(r.Context(), session, id))
}

// changedWays writes an audit record of a changed passkey and shows the account page,
// with the error if the change failed.
func (a *API) changedWays(w http.ResponseWriter, r *http.Request, session *signin.Session, verb string,
	err error,
) error {
	status := http.StatusOK
	if err != nil {
		status = statusOf(w, err)
	}
	rec := pipeline.Record(r, surfaceName, nil, pipeline.Asked{}, status)
	rec.Verb, rec.Resource, rec.Source = verb, "passkeys", a.opts.Source(r)
	rec.Organization, rec.Principal = session.Subject.Organization, a.opts.People.Principal(session.Subject)
	a.opts.Auditor.Record(rec)
	switch kind := errs.KindOf(err); {
	case err == nil:
		return a.goTo(w, r, pathAccount)
	case kind == errs.Internal || kind == errs.Unavailable:
		return err
	}
	a.note(r, err)
	return a.accountPage(w, r, status, sentence(err.Error()))
}

// note adds the error of a form to the request's log record.
func (a *API) note(r *http.Request, err error) { web.RecordOf(r.Context()).Fail(err) }
