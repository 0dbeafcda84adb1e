package signinapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/identity/signin"
)

// maxParameter limits each parameter of a request, in bytes.
const maxParameter = 1 << 10

var (
	errClient = errs.New(errs.Invalid,
		"application that sent you here is unknown to this server; client_id must be "+signin.ClientConsole)
	errRedirect = errs.New(errs.Invalid, "application that sent you here requests a redirect to an address that "+
		"is not its own; redirect_uri must be the console of this server")
	errParameter = errs.New(errs.Invalid, "parameter of the request occurs twice or is too long")
)

// authorize serves the authorization endpoint (RFC 6749 §4.1, RFC 7636). If the client
// or its redirect URI is invalid, it shows an error page and does not redirect.
func (a *API) authorize(w http.ResponseWriter, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errForm
	}
	for _, values := range query {
		if len(values) > 1 || len(values[0]) > maxParameter {
			return errParameter
		}
	}
	redirect := query.Get("redirect_uri")
	switch {
	case query.Get("client_id") != signin.ClientConsole:
		return errClient
	case !a.isConsole(redirect):
		return errRedirect
	}
	if code, text := checkRequest(query); code != "" {
		return a.redirectToClient(w, r, redirect,
			url.Values{"error": {code}, "error_description": {text}, "state": query["state"]})
	}
	session, err := a.session(r)
	if err != nil {
		return err
	}
	prompt := strings.Fields(query.Get("prompt"))
	switch {
	case session == nil && slices.Contains(prompt, "none"):
		return a.redirectToClient(w, r, redirect,
			url.Values{
				"error": {"login_required"}, "error_description": {"no user is signed in in this browser"},
				"state": query["state"],
			})
	case session == nil || slices.Contains(prompt, "login"):
		query.Del("prompt")
		next := url.Values{"next": {pathAuthorize + "?" + query.Encode()}}
		if session != nil {
			next.Set("again", "true")
		}
		return a.redirect(w, r, pathSignIn+"?"+next.Encode())
	}
	code, err := a.opts.Codes.NewCode(r.Context(), session, signin.CodeRequest{
		Client: signin.ClientConsole, Redirect: redirect, Challenge: query.Get("code_challenge"),
		Nonce: query.Get("nonce"),
	})
	if err != nil {
		return err
	}
	return a.redirectToClient(w, r, redirect, url.Values{"code": {code.Reveal()}, "state": query["state"]})
}

// checkRequest returns the error of a request from a valid client, "" if there is none.
func checkRequest(query url.Values) (code, text string) {
	switch {
	case query.Get("response_type") != "code":
		return "unsupported_response_type", "response_type must be code"
	case query.Get("response_mode") != "" && query.Get("response_mode") != "query":
		return "invalid_request", "response_mode must be query"
	case query.Get("code_challenge_method") != "S256":
		return "invalid_request", "code_challenge_method must be S256"
	case !signin.IsChallenge(query.Get("code_challenge")):
		return "invalid_request", "code_challenge must be a SHA-256 in base64url without padding"
	case query.Has("request") || query.Has("request_uri"):
		return "request_not_supported", "request objects are not supported"
	}
	return "", ""
}

// isConsole reports whether an address is exactly one of the console's.
func (a *API) isConsole(address string) bool {
	return slices.ContainsFunc(a.opts.Origins, func(origin string) bool { return address == origin+pathConsole })
}

// redirectToClient redirects the browser to the client. It adds the issuer, which prevents mix-up
// attacks (RFC 9207).
func (a *API) redirectToClient(w http.ResponseWriter, r *http.Request, redirect string, parameters url.Values) error {
	if len(parameters["state"]) == 0 {
		delete(parameters, "state")
	}
	parameters.Set("iss", a.opts.Issuer)
	return a.redirect(w, r, redirect+"?"+parameters.Encode())
}

// redirect redirects the browser with GET and without a referrer.
func (a *API) redirect(w http.ResponseWriter, r *http.Request, address string) error {
	a.setSecurityHeaders(w)
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// nextPages are the pages that a sign-in may redirect to, with their query.
var nextPages = []string{pathAuthorize, pathDevice, pathAccount}

// nextPage returns the redirect after signing in: wanted if it is one of nextPages, otherwise
// the console. This prevents open redirects.
func nextPage(requested string) string {
	u, err := url.Parse(requested)
	if err != nil || len(requested) > 4*maxParameter || u.Scheme != "" || u.Host != "" || u.User != nil ||
		u.Opaque != "" ||
		!slices.Contains(nextPages, u.Path) || u.RawPath != "" {
		return pathConsole
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return pathConsole
	}
	return u.Path + "?" + query.Encode()
}
