package tokenapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/throttle"
)

// response is the body of a token response (docs/spec/resources.md#token-endpoint).
type response struct {
	AccessToken string `json:"access_token"` // the only place where a token is sent in plain text
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`

	RefreshToken     string `json:"refresh_token,omitempty"` // user grants only
	RefreshExpiresIn int64  `json:"refresh_token_expires_in,omitempty"`
	IDToken          string `json:"id_token,omitempty"`
}

// token serves POST /oauth/token.
func (a *API) token(w http.ResponseWriter, r *http.Request) error {
	address := throttle.AddressKey(r.RemoteAddr)
	req, err := parseRequest(r)
	if err != nil {
		return a.failAddress(address, err)
	}
	switch req.grantType {
	case grantClient:
	case grantCode, grantRefresh, grantDevice:
		return a.userGrant(w, r, req, address)
	case "":
		return a.failAddress(address, invalidRequest("parameter grant_type is missing"))
	default:
		return a.failAddress(address, unsupportedGrant())
	}
	account, err := a.authenticate(r, req, address)
	if err != nil {
		return err
	}
	audiences, lifetime, err := a.audience(r, account, req.audience)
	if err != nil {
		a.record(r, account, loggableAudience(req.audience), http.StatusForbidden)
		return a.failAddress(address, err)
	}
	token, expires, err := a.opts.Issuer.AccessToken(account, lifetime, audiences...)
	if err != nil {
		return err
	}
	a.record(r, account, audiences[0], http.StatusOK)
	rec := web.RecordOf(r.Context())
	rec.Principal = a.opts.Issuer.PrincipalName(account.Organization, account.Name)
	rec.Audience = audiences[0]
	noStore(w.Header())
	return web.WriteJSON(w, http.StatusOK, jsonType, response{
		AccessToken: token.Reveal(),
		TokenType:   "Bearer",
		ExpiresIn:   secondsUntil(expires),
		Scope:       strings.Join(account.Scopes(), " "),
	})
}

// secondsUntil returns the seconds until end, rounded up: the expiry is a whole second,
// so a part of the first second has already passed.
func secondsUntil(end time.Time) int64 {
	return int64((time.Until(end) + time.Second - 1) / time.Second)
}

// authenticate finds the account by the client credentials. The limits count wrong secrets only,
// and the right secret always passes, so that nobody can lock a client out. Guessing is hopeless
// without a limit, because secrets have 256 random bits, and a check costs only one HMAC.
func (a *API) authenticate(r *http.Request, req *request, address string) (*identity.Account, error) {
	if req.clientID == "" || len(req.clientID) > maxClientID || req.clientSecret.IsZero() {
		return nil, a.failAddress(address, invalidClient(req.basic))
	}
	account, err := identity.Authenticate(a.opts.Directory, a.opts.Sealer, req.clientID, req.clientSecret)
	if errors.Is(err, identity.ErrInvalidClient) {
		if over := a.guard.Fail(req.clientID, address); !over.None() {
			return nil, throttled(wrongSecretsOf, over)
		}
		known, _ := a.opts.Directory.AccountByClientID(req.clientID)
		a.record(r, known, "", http.StatusUnauthorized)
		return nil, invalidClient(req.basic)
	}
	if err != nil {
		return nil, err
	}
	if wait := a.clients.Take(req.clientID); wait > 0 {
		return nil, throttled(tokensOf, throttle.Exceeded{Scope: perClient, Wait: wait})
	}
	if wait := a.organizations.Take(account.Organization); wait > 0 {
		return nil, throttled(tokensOf, throttle.Exceeded{Scope: perOrganization, Wait: wait})
	}
	return account, nil
}

// audience returns the audiences and the lifetime of the token
// (docs/spec/resources.md#r10): the resource API by any of its addresses, which is also
// the default, or one data plane.
func (a *API) audience(r *http.Request, account *identity.Account, requested string) ([]string, time.Duration, error) {
	known := identity.Audiences{Addresses: a.opts.Audiences, Instances: a.opts.Instances, Lifetime: a.opts.Lifetime}
	audiences, lifetime, ok := known.Resolve(account, requested, r.Host)
	if !ok {
		return nil, 0, audienceDenied()
	}
	return audiences, lifetime, nil
}

// loggableAudience returns an audience if it may be logged, otherwise "". A value that does not
// look like an audience may be a misplaced secret.
func loggableAudience(audience string) string {
	if _, _, ok := identity.ParseInstanceAudience(audience); ok || identity.IsBaseURL(audience) {
		return audience
	}
	return ""
}

// record writes an audit record. It does not name an unknown client, because its id may
// be a misplaced secret.
func (a *API) record(r *http.Request, account *identity.Account, aud string, status int) {
	rec := pipeline.Record(r, surfaceName, nil, pipeline.Authorization{}, status)
	rec.Verb, rec.Resource = "create", "tokens"
	if account != nil {
		rec.Organization = account.Organization
		rec.Principal = a.opts.Issuer.PrincipalName(account.Organization, account.Name)
		if aud != "" {
			rec.Scope = "audience/" + aud
		}
	}
	a.opts.Auditor.Record(rec)
}
