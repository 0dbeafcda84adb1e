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

// response is what a client gets (docs/spec/resources.md#token-endpoint).
type response struct {
	AccessToken string `json:"access_token"` // in clear: this is the one place for it
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`

	RefreshToken     string `json:"refresh_token,omitempty"` // of people
	RefreshExpiresIn int64  `json:"refresh_token_expires_in,omitempty"`
	IDToken          string `json:"id_token,omitempty"`
}

// token serves POST /oauth/token.
func (a *API) token(w http.ResponseWriter, r *http.Request) error {
	address := throttle.AddressKey(a.opts.Source(r))
	if wait := a.addresses.Take(address); wait > 0 {
		return tooMany(wait)
	}
	req, err := parseRequest(r)
	if err != nil {
		return err
	}
	switch req.grantType {
	case grantClient:
	case grantCode, grantRefresh, grantDevice:
		return a.grant(w, r, req)
	case "":
		return invalidRequest("parameter grant_type is missing")
	default:
		return unsupportedGrant()
	}
	account, err := a.authenticate(r, req, address)
	if err != nil {
		return err
	}
	audiences, lifetime, err := a.audience(r, account, req.audience)
	if err != nil {
		a.record(r, account, nameable(req.audience), http.StatusForbidden)
		return err
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

// secondsUntil rounds up: expiry is a whole second, so a bit of the first one is
// gone.
func secondsUntil(end time.Time) int64 {
	return int64((time.Until(end) + time.Second - 1) / time.Second)
}

// authenticate finds the account. Limits on guessing come first, so that it is
// slow whether or not the client exists. They count wrong secrets only, by client
// and address, and by client for all addresses together; the latter does not hold
// for an address that has had a token, so that nobody can lock a client out from
// elsewhere.
func (a *API) authenticate(r *http.Request, req *request, address string) (*identity.Account, error) {
	if req.clientID == "" || len(req.clientID) > maxClientID || req.clientSecret.IsZero() {
		return nil, invalidClient(req.basic)
	}
	guesser := req.clientID + "\x00" + address
	if wait := a.failures.Peek(guesser); wait > 0 {
		return nil, tooMany(wait)
	}
	if _, ok := a.owners.Get(guesser); !ok {
		if wait := a.guesses.Peek(req.clientID); wait > 0 {
			return nil, tooMany(wait)
		}
	}
	account, err := identity.Authenticate(a.opts.Directory, a.opts.Sealer, req.clientID, req.clientSecret)
	if errors.Is(err, identity.ErrInvalidClient) {
		a.failures.Take(guesser)
		a.guesses.Take(req.clientID)
		known, _ := a.opts.Directory.AccountByClientID(req.clientID)
		a.record(r, known, "", http.StatusUnauthorized)
		return nil, invalidClient(req.basic)
	}
	if err != nil {
		return nil, err
	}
	a.owners.Add(guesser, struct{}{}, 1)
	if wait := a.clients.Take(req.clientID); wait > 0 {
		return nil, tooMany(wait)
	}
	return account, nil
}

// audience decides what the token will be good for
// (docs/spec/resources.md#r10): the resource API by any of its addresses, which
// is also the default, or one data plane.
func (a *API) audience(r *http.Request, account *identity.Account, wanted string) ([]string, time.Duration, error) {
	known := identity.Audiences{Addresses: a.opts.Audiences, Instances: a.opts.Instances, Lifetime: a.opts.Lifetime}
	audiences, lifetime, ok := known.Resolve(account, wanted, r.Host)
	if !ok {
		return nil, 0, deniedAudience()
	}
	return audiences, lifetime, nil
}

// nameable is an audience that may be written down: one that looks like an
// audience. Anything else may be a misplaced secret.
func nameable(audience string) string {
	if _, _, ok := identity.ParseInstanceAudience(audience); ok || identity.IsBaseURL(audience) {
		return audience
	}
	return ""
}

// record leaves an audit record. Of a client that is not known it names
// nothing: its id may be a misplaced secret.
func (a *API) record(r *http.Request, account *identity.Account, aud string, status int) {
	rec := pipeline.Record(r, surfaceName, nil, pipeline.Asked{}, status)
	rec.Verb, rec.Resource, rec.Source = "create", "tokens", a.opts.Source(r)
	if account != nil {
		rec.Organization = account.Organization
		rec.Principal = a.opts.Issuer.PrincipalName(account.Organization, account.Name)
		if aud != "" {
			rec.Scope = "audience/" + aud
		}
	}
	a.opts.Auditor.Record(rec)
}
