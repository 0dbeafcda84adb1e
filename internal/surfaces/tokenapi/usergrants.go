package tokenapi

import (
	"errors"
	"net/http"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/throttle"
)

// The grant types. All but client_credentials are for users, who use public clients
// without a secret (docs/spec/signin.md#tokens).
const (
	grantClient  = "client_credentials"
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
)

var grantTypes = []string{grantClient, grantCode, grantRefresh, grantDevice}

// clientGrants are the grant types of each public client.
var clientGrants = map[string][]string{
	signin.ClientConsole: {grantCode, grantRefresh},
	signin.ClientCLI:     {grantDevice, grantRefresh},
}

// publicClient checks that the request comes from a public client that may use the grant.
func publicClient(req *request, grant string) error {
	switch {
	case req.clientID == "":
		return invalidRequest("parameter client_id is missing")
	case !req.clientSecret.IsZero():
		return invalidClient(req.basic) // public clients have no secret
	}
	for _, allowed := range clientGrants[req.clientID] {
		if allowed == grant {
			return nil
		}
	}
	return &oauthError{
		status: http.StatusBadRequest, code: "unauthorized_client",
		text: "client may not use this grant: " + signin.ClientConsole + " uses authorization codes, " +
			signin.ClientCLI + " device codes", cause: errRequest,
	}
}

// userGrant serves the user grants at the token endpoint.
func (a *API) userGrant(w http.ResponseWriter, r *http.Request, req *request, address string) error {
	if err := publicClient(req, req.grantType); err != nil {
		return a.failAddress(address, err)
	}
	leave, err := a.enterAddress(r.Context(), address)
	if err != nil {
		return err
	}
	g, err := a.exchange(r, req)
	leave()
	if err != nil {
		mapped := a.grantErrorOf(r, err)
		if errors.Is(err, signin.ErrInvalidGrant) || errors.Is(err, errRequest) {
			return a.failAddress(address, mapped)
		}
		return mapped
	}
	return a.writeGrant(w, r, req, g)
}

// exchange exchanges the secret of a request for a grant.
func (a *API) exchange(r *http.Request, req *request) (*signin.Grant, error) {
	switch req.grantType {
	case grantCode:
		if req.code == "" || req.redirect == "" || req.verifier == "" {
			return nil, invalidRequest("code, redirect_uri and code_verifier are required")
		}
		return a.opts.Codes.UseCode(r.Context(), req.code, req.clientID, req.redirect, req.verifier)
	case grantRefresh:
		if req.refresh == "" {
			return nil, invalidRequest("parameter refresh_token is missing")
		}
		return a.opts.Grants.Refresh(r.Context(), req.refresh, req.clientID)
	}
	if req.device == "" {
		return nil, invalidRequest("parameter device_code is missing")
	}
	return a.opts.Devices.PollDevice(r.Context(), req.device, req.clientID)
}

// grantErrorOf maps an error to an error response of RFC 6749 or RFC 8628. It writes an
// audit record if a refresh token was reused, because the token may have been stolen.
func (a *API) grantErrorOf(r *http.Request, err error) error {
	var reused *signin.ReusedTokenError
	switch {
	case errors.As(err, &reused):
		a.recordSignIn(r, reused.Subject, "refresh", http.StatusUnauthorized)
		return grantError("invalid_grant", err)
	case errors.Is(err, signin.ErrInvalidGrant):
		return grantError("invalid_grant", signin.ErrInvalidGrant)
	case errors.Is(err, signin.ErrPending):
		return grantError("authorization_pending", err)
	case errors.Is(err, signin.ErrSlowDown):
		return grantError("slow_down", err)
	case errors.Is(err, signin.ErrApprovalEnded):
		return grantError("access_denied", signin.ErrApprovalEnded)
	case errors.Is(err, signin.ErrDeviceRejected):
		return grantError("access_denied", err)
	case errors.Is(err, signin.ErrDeviceExpired):
		return grantError("expired_token", err)
	}
	return err
}

func grantError(code string, err error) error {
	return &oauthError{status: http.StatusBadRequest, code: code, text: err.Error(), cause: errRequest}
}

func (a *API) writeGrant(w http.ResponseWriter, r *http.Request, req *request, g *signin.Grant) error {
	access, scope, expires, err := a.opts.Grants.Tokens(g)
	if err != nil {
		return err
	}
	body := response{
		AccessToken: access.Reveal(), TokenType: "Bearer", ExpiresIn: secondsUntil(expires), Scope: scope,
		RefreshToken: g.Refresh.Reveal(), RefreshExpiresIn: secondsUntil(g.Ends()),
	}
	if req.grantType != grantRefresh {
		id, err := a.opts.Grants.IDToken(g)
		if err != nil {
			return err
		}
		body.IDToken = id.Reveal()
		a.recordSignIn(r, g.Subject, "create", http.StatusOK)
	}
	web.RecordOf(r.Context()).Principal = a.opts.Subjects.Principal(g.Subject)
	noStore(w.Header())
	return web.WriteJSON(w, http.StatusOK, jsonType, body)
}

// recordSignIn writes an audit record about a user's grant.
func (a *API) recordSignIn(r *http.Request, subject signin.Subject, verb string, status int) {
	rec := pipeline.Record(r, surfaceName, nil, pipeline.Authorization{}, status)
	rec.Verb, rec.Resource = verb, "grants"
	rec.Organization, rec.Principal = subject.Organization, a.opts.Subjects.Principal(subject)
	a.opts.Auditor.Record(rec)
}

// beginDevice serves POST /oauth/device_authorization (RFC 8628 §3.1).
func (a *API) beginDevice(w http.ResponseWriter, r *http.Request) error {
	address := throttle.AddressKey(r.RemoteAddr)
	req, err := parseRequest(r)
	if err != nil {
		return a.failAddress(address, err)
	}
	if req.clientID == "" {
		req.clientID = "?" // a missing client id gets the same error as an unknown one
	}
	if err := publicClient(req, grantDevice); err != nil {
		return a.failAddress(address, err)
	}
	if wait := a.devicePerAddress.Take(address); wait > 0 {
		return throttled(deviceSignInsOf, throttle.Exceeded{Scope: throttle.PerAddress, Wait: wait})
	}
	if wait := a.deviceTotal.Take(""); wait > 0 {
		return throttled(deviceSignInsOf, throttle.Exceeded{Scope: perServer, Wait: wait})
	}
	device, err := a.opts.Devices.BeginDevice(r.Context(), req.clientID, address)
	if err != nil {
		return err
	}
	page := a.opts.Audiences[0] + "/oauth/device"
	noStore(w.Header())
	return web.WriteJSON(w, http.StatusOK, jsonType, struct {
		DeviceCode string `json:"device_code"`
		UserCode   string `json:"user_code"`
		Page       string `json:"verification_uri"`
		Complete   string `json:"verification_uri_complete"`
		ExpiresIn  int64  `json:"expires_in"`
		Interval   int64  `json:"interval"`
	}{
		device.Code.Reveal(), device.UserCode, page, page + "?user_code=" + device.UserCode,
		secondsUntil(device.Ends), int64(signin.DeviceInterval / time.Second),
	})
}

// revoke serves POST /oauth/revoke (RFC 7009), which signs the user out. It responds with
// 200 to an invalid token: such a token counts as revoked.
func (a *API) revoke(w http.ResponseWriter, r *http.Request) error {
	address := throttle.AddressKey(r.RemoteAddr)
	req, err := parseRequest(r)
	if err != nil {
		return a.failAddress(address, err)
	}
	if err := publicClient(req, grantRefresh); err != nil {
		return a.failAddress(address, err)
	}
	if req.token == "" {
		return a.failAddress(address, invalidRequest("parameter token is missing"))
	}
	leave, err := a.enterAddress(r.Context(), address)
	if err != nil {
		return err
	}
	defer leave()
	subject, err := a.opts.Grants.Revoke(r.Context(), req.token, req.clientID)
	if err != nil {
		return err
	}
	if subject == (signin.Subject{}) {
		// It may be an access token: a client that has one may end its session.
		principal, err := a.opts.Authenticator.Authenticate(r.Context(), req.token, a.opts.Accepted...)
		if err == nil && principal.SessionID != "" {
			subject = signin.Subject{
				Organization: principal.Organization, User: principal.User,
				Account: principal.ServiceAccount,
			}
			if err := a.opts.Grants.EndGrant(r.Context(), principal.SessionID); err != nil {
				return err
			}
		}
	}
	if subject != (signin.Subject{}) {
		a.recordSignIn(r, subject, "delete", http.StatusOK)
	} else if err := a.failAddress(address, nil); err != nil {
		return err
	}
	noStore(w.Header())
	w.WriteHeader(http.StatusOK)
	return nil
}

// userInfoBody is the user or service account of a token.
type userInfoBody struct {
	Subject       string     `json:"sub"`
	Principal     string     `json:"principal"`
	Kind          string     `json:"kind"` // User or ServiceAccount
	Organization  string     `json:"organization"`
	Username      string     `json:"preferred_username"`
	Name          string     `json:"name"`
	Email         string     `json:"email,omitempty"`
	Administrator bool       `json:"administrator"`
	System        bool       `json:"system_administrator"`
	APIKey        string     `json:"api_key,omitempty"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	SignedIn      bool       `json:"signed_in"` // the token belongs to a session, which signing out ends
}

// userInfo serves /oauth/userinfo: the user or service account of the caller.
func (c *call) userInfo() error {
	principal := c.Principal
	body := userInfoBody{
		Subject: principal.Name, Principal: principal.Name, Kind: "ServiceAccount",
		Organization: principal.Organization,
		Username:     principal.ServiceAccount, Name: principal.ServiceAccount,
		Administrator: principal.Admin || principal.System, System: principal.System, APIKey: principal.KeyName,
		SignedIn: principal.SessionID != "",
	}
	if principal.User != "" {
		body.Kind, body.Username, body.Name = "User", principal.User, principal.User
		if user, ok := c.api.opts.Directory.User(principal.Organization, principal.User); ok {
			body.Email = user.Email
			body.Name, _ = c.api.opts.Subjects.Alive(signin.Subject{
				Organization: user.Organization, User: user.Name,
				UID: user.UID, Email: user.Email,
			})
		}
	} else if principal.System {
		body.Name = "System administrator"
	}
	if principal.SessionID != "" {
		// as in the id token
		body.Subject = (&identity.Session{UID: principal.UID, Account: principal.ServiceAccount}).Subject()
	}
	if !principal.ExpiresAt.IsZero() {
		body.ExpiresAt = &principal.ExpiresAt
	}
	noStore(c.W.Header())
	return web.WriteJSON(c.W, http.StatusOK, jsonType, body)
}

// unauthenticated returns the error response for a rejected token (RFC 6750).
func unauthenticated(err error) error {
	return &oauthError{
		status: http.StatusUnauthorized, code: "invalid_token", text: err.Error(), cause: err,
		challenge: pipeline.Challenge("freshet", err),
	}
}
