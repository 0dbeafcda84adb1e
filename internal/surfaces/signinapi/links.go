package signinapi

import (
	"net/http"
	"net/url"

	"freshet/internal/base/errs"
	"freshet/internal/identity/signin"
)

// showInvite shows the form that sets a passkey or a password. GET does not use up the
// invitation, because mail scanners and chat programs open links before users do.
func (a *API) showInvite(w http.ResponseWriter, r *http.Request) error {
	if err := a.mayTryLink(r); err != nil {
		return err
	}
	token := r.URL.Query().Get("token")
	of, err := a.opts.People.Invited(r.Context(), token)
	if err != nil {
		return a.refuseLink(r, err, signin.MethodInvitation)
	}
	return a.inviteForm(w, r, http.StatusOK, of, token, "")
}

// acceptInvite sets the password and signs the user in.
func (a *API) acceptInvite(w http.ResponseWriter, r *http.Request, form url.Values) error {
	if err := a.mayTryLink(r); err != nil {
		return err
	}
	token, password := form.Get("token"), form.Get("password")
	of, err := a.opts.People.Invited(r.Context(), token)
	if err != nil {
		return a.refuseLink(r, err, signin.MethodInvitation)
	}
	if password != form.Get("repeated") {
		return a.inviteForm(w, r, http.StatusUnprocessableEntity, of, token, "The two passwords are different.")
	}
	_, err = a.opts.People.Accept(r.Context(), token, password)
	if errs.KindOf(err) == errs.Invalid {
		return a.inviteForm(w, r, http.StatusUnprocessableEntity, of, token, sentence(err.Error()))
	}
	if err != nil {
		return a.refuseLink(r, err, signin.MethodInvitation)
	}
	if err := a.enter(w, r, of, signin.MethodInvitation); err != nil {
		return err
	}
	return a.goTo(w, r, pathConsole)
}

// showLink shows the form that signs in as the system administrator.
func (a *API) showLink(w http.ResponseWriter, r *http.Request) error {
	if err := a.mayTryLink(r); err != nil {
		return err
	}
	token := r.URL.Query().Get("token")
	if err := a.opts.People.LinkGood(r.Context(), token); err != nil {
		return a.refuseLink(r, err, signin.MethodLink)
	}
	return a.show(w, r, http.StatusOK,
		page{Template: "link", Title: "Sign in as the system administrator", Token: token})
}

// followLink signs the user in and uses up the link.
func (a *API) followLink(w http.ResponseWriter, r *http.Request, form url.Values) error {
	if err := a.mayTryLink(r); err != nil {
		return err
	}
	of, err := a.opts.People.FollowLink(r.Context(), form.Get("token"))
	if err != nil {
		return a.refuseLink(r, err, signin.MethodLink)
	}
	if err := a.enter(w, r, of, signin.MethodLink); err != nil {
		return err
	}
	return a.goTo(w, r, pathConsole)
}

func (a *API) refuseLink(r *http.Request, err error, method string) error {
	if errs.KindOf(err) == errs.Unauthenticated {
		a.record(r, signin.Subject{}, "signin", method, http.StatusUnauthorized)
		a.opts.Observe(method, "failure")
	}
	return err
}
