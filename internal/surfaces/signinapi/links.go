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
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	token := r.URL.Query().Get("token")
	subject, err := a.opts.Links.Invited(r.Context(), token)
	if err != nil {
		return a.recordLinkFailure(r, err, signin.MethodInvitation)
	}
	return a.inviteForm(w, r, http.StatusOK, subject, token, "")
}

// acceptInvite sets the password and signs the user in.
func (a *API) acceptInvite(w http.ResponseWriter, r *http.Request, form url.Values) error {
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	token, password := form.Get("token"), form.Get("password")
	subject, err := a.opts.Links.Invited(r.Context(), token)
	if err != nil {
		return a.recordLinkFailure(r, err, signin.MethodInvitation)
	}
	if password != form.Get("repeated") {
		return a.inviteForm(w, r, http.StatusUnprocessableEntity, subject, token, "The two passwords are different.")
	}
	_, err = a.opts.Passwords.Accept(r.Context(), token, password)
	if errs.KindOf(err) == errs.Invalid {
		return a.inviteForm(w, r, http.StatusUnprocessableEntity, subject, token, sentence(err.Error()))
	}
	if err != nil {
		return a.recordLinkFailure(r, err, signin.MethodInvitation)
	}
	if err := a.startSession(w, r, subject, signin.MethodInvitation); err != nil {
		return err
	}
	return a.redirect(w, r, pathConsole)
}

// showLink shows the form that signs in as the system administrator.
func (a *API) showLink(w http.ResponseWriter, r *http.Request) error {
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	token := r.URL.Query().Get("token")
	if err := a.opts.Links.CheckLink(r.Context(), token); err != nil {
		return a.recordLinkFailure(r, err, signin.MethodLink)
	}
	return a.show(w, r, http.StatusOK,
		page{Template: "link", Title: "Sign in as the system administrator", Token: token})
}

// followLink signs the user in and uses up the link.
func (a *API) followLink(w http.ResponseWriter, r *http.Request, form url.Values) error {
	if err := a.admitAttempt(r); err != nil {
		return err
	}
	subject, err := a.opts.Links.FollowLink(r.Context(), form.Get("token"))
	if err != nil {
		return a.recordLinkFailure(r, err, signin.MethodLink)
	}
	if err := a.startSession(w, r, subject, signin.MethodLink); err != nil {
		return err
	}
	return a.redirect(w, r, pathConsole)
}

func (a *API) recordLinkFailure(r *http.Request, err error, method string) error {
	if errs.KindOf(err) == errs.Unauthenticated {
		a.record(r, signin.Subject{}, "signin", method, http.StatusUnauthorized)
		a.opts.Counter.Count(method, "failure")
	}
	return err
}
