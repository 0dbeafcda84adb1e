package signinapi

import (
	"errors"
	"net/http"
	"net/url"

	"freshet/internal/identity/signin"
)

// showDevice shows the form for the code of a device, and then the form that approves
// the device.
func (a *API) showDevice(w http.ResponseWriter, r *http.Request) error {
	userCode := r.URL.Query().Get("user_code")
	session, err := a.session(r)
	if err != nil {
		return err
	}
	if session == nil {
		to := pathDevice
		if len(userCode) <= 64 && userCode != "" {
			to += "?" + url.Values{"user_code": {userCode}}.Encode()
		}
		return a.redirect(w, r, pathSignIn+"?"+url.Values{"next": {to}}.Encode())
	}
	ask := page{
		Template: "device", Title: "Sign in on a device", Display: session.Display,
		Organization: session.Subject.Organization,
	}
	if userCode == "" {
		return a.show(w, r, http.StatusOK, ask)
	}
	if wait := a.deviceCodes.Take(session.ID); wait > 0 {
		return &throttledError{perSession, wait}
	}
	device, err := a.opts.Devices.DeviceOf(r.Context(), userCode)
	if errors.Is(err, signin.ErrNoDevice) {
		ask.Problem = sentence(err.Error())
		return a.show(w, r, http.StatusNotFound, ask)
	}
	if err != nil {
		return err
	}
	ask.Device, ask.Title = device, "Is this your device?"
	return a.show(w, r, http.StatusOK, ask)
}

// decideDevice approves or rejects the device.
func (a *API) decideDevice(w http.ResponseWriter, r *http.Request, form url.Values) error {
	session, err := a.session(r)
	if err != nil {
		return err
	}
	if session == nil {
		return signin.ErrNoSession
	}
	if wait := a.deviceCodes.Take(session.ID); wait > 0 {
		return &throttledError{perSession, wait}
	}
	approved := form.Get("decision") == "approve"
	err = a.opts.Devices.DecideDevice(r.Context(), form.Get("user_code"), session, approved)
	if errors.Is(err, signin.ErrNoDevice) {
		return a.show(w, r, http.StatusNotFound, page{
			Template: "device", Title: "Sign in on a device", Display: session.Display,
			Organization: session.Subject.Organization, Problem: sentence(err.Error()),
		})
	}
	if err != nil {
		return err
	}
	verb, title, text := "approve", "The device is signed in", "You can close this page and return to your terminal."
	if !approved {
		verb, title, text = "refuse", "The device was rejected", "It is not signed in. If you did not start this "+
			"sign-in, an attacker may have sent you its link. Report it to your administrator."
	}
	a.record(r, session.Subject, verb, "device", http.StatusOK)
	return a.show(w, r, http.StatusOK, page{Template: "message", Title: title, Text: text})
}

// showSignOut shows the form to sign out. A link alone must not sign a user out.
func (a *API) showSignOut(w http.ResponseWriter, r *http.Request) error {
	return a.showOwn(w, r, page{Template: "signout", Title: "Sign out?"})
}

func (a *API) showOwn(w http.ResponseWriter, r *http.Request, p page) error {
	session, err := a.session(r)
	if err != nil {
		return err
	}
	if session == nil {
		return a.redirect(w, r, pathSignIn)
	}
	p.Display, p.Organization, p.Session = session.Display, session.Subject.Organization, session
	return a.show(w, r, http.StatusOK, p)
}

// signOut ends the session and all tokens that were issued from it.
func (a *API) signOut(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	session, err := a.session(r)
	if err != nil {
		return err
	}
	if session != nil {
		if err := a.opts.Sessions.EndSession(r.Context(), session.ID); err != nil {
			return err
		}
		a.record(r, session.Subject, "signout", "", http.StatusOK)
	}
	a.setCookie(w, r, cookieSession, "", 0)
	return a.show(w, r, http.StatusOK,
		page{
			Template: "message", Title: "You are signed out",
			Text: "All sessions of this browser have ended.", SignInAgain: true,
		})
}
