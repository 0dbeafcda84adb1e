// Package openid signs people in at an external OpenID provider: authorization code flow
// with state, nonce and PKCE (docs/spec/signin.md#provider).
//
// It returns an e-mail address that the provider has verified. It does not know users and
// sessions; internal/surfaces/signinapi finds the user of the address.
//
// # Locks
//
// Provider.mu protects the discovered endpoints and keys. It is held during the discovery
// request, so that only one such request runs.
package openid

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Options configures the provider and this server's registration there.
type Options struct {
	Issuer       string
	ClientID     string
	ClientSecret identity.Secret
	RedirectURL  string
	Domains      []string // e-mail domains that are accepted; empty accepts all
	Client       *http.Client
}

// Provider is an external OpenID provider. It discovers the endpoints at the first use, so
// that the server starts even if the provider is down.
type Provider struct {
	opts Options

	mu         sync.Mutex // protects the field below; held during discovery
	discovered *endpoints
}

type endpoints struct {
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// Errors of a sign-in.
var (
	ErrUnavailable     = errs.New(errs.Unavailable, "OpenID provider does not respond; try again later")
	ErrNotConfirmed    = errs.New(errs.Unauthenticated, "OpenID provider did not confirm your identity; start again")
	ErrNoVerifiedEmail = errs.New(errs.Denied,
		"OpenID provider did not return a verified e-mail address that this server accepts")
)

// requestTimeout is the timeout of requests to the provider.
const requestTimeout = 10 * time.Second

// New returns a provider. It sends no request.
func New(opts Options) *Provider {
	if opts.Client == nil {
		opts.Client = &http.Client{Timeout: requestTimeout}
	}
	return &Provider{opts: opts}
}

// Trusts reports whether the domain of an e-mail address is accepted from the provider.
func (p *Provider) Trusts(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	if !ok {
		return false
	}
	return len(p.opts.Domains) == 0 ||
		slices.ContainsFunc(p.opts.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// Login is the state that the browser keeps while it is at the provider.
type Login struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// Begin returns the URL of the provider to which to redirect the browser, and the state for
// Finish.
func (p *Provider) Begin(ctx context.Context) (string, Login, error) {
	k, err := p.discover(ctx)
	if err != nil {
		return "", Login{}, err
	}
	login := Login{
		State: identity.GenerateSecret().Reveal(), Nonce: identity.GenerateSecret().Reveal(),
		Verifier: oauth2.GenerateVerifier(),
	}
	return k.oauth.AuthCodeURL(login.State, oidc.Nonce(login.Nonce), oauth2.S256ChallengeOption(login.Verifier)), login,
		nil
}

// Finish exchanges the authorization code and returns the e-mail address that the provider
// has verified.
func (p *Provider) Finish(ctx context.Context, login Login, state, code string) (email string, err error) {
	if login.State == "" || subtle.ConstantTimeCompare([]byte(login.State), []byte(state)) != 1 || code == "" {
		return "", ErrNotConfirmed
	}
	k, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.opts.Client), requestTimeout)
	defer cancel()
	token, err := k.oauth.Exchange(ctx, code, oauth2.VerifierOption(login.Verifier))
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil &&
			refused.Response.StatusCode < http.StatusInternalServerError {
			return "", ErrNotConfirmed
		}
		return "", errs.Newf(errs.Unavailable, "%w: %v", ErrUnavailable, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return "", ErrNotConfirmed
	}
	proof, err := k.verifier.Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotConfirmed, err)
	}
	if subtle.ConstantTimeCompare([]byte(proof.Nonce), []byte(login.Nonce)) != 1 {
		return "", ErrNotConfirmed
	}
	var claims struct {
		Email    string    `json:"email"`
		Verified looseBool `json:"email_verified"`
	}
	if err := proof.Claims(&claims); err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotConfirmed, err)
	}
	if claims.Email == "" || !bool(claims.Verified) || !p.Trusts(claims.Email) {
		return "", ErrNoVerifiedEmail
	}
	return claims.Email, nil
}

// looseBool is a JSON boolean that may also be a string, because some providers send one.
type looseBool bool

// UnmarshalJSON implements json.Unmarshaler.
func (v *looseBool) UnmarshalJSON(data []byte) error {
	text := string(data)
	*v = text == "true" || text == `"true"`
	return nil
}

// discover returns the provider's endpoints and keys. It requests them once.
func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.discovered != nil {
		return p.discovered, nil
	}
	// The provider uses the context later for fetching keys, so it must not be canceled
	// with this request. The HTTP client has a timeout.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.opts.Client), p.opts.Issuer)
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "%w: %v", ErrUnavailable, err)
	}
	p.discovered = &endpoints{
		oauth: oauth2.Config{
			ClientID: p.opts.ClientID, ClientSecret: p.opts.ClientSecret.Reveal(), Endpoint: provider.Endpoint(),
			RedirectURL: p.opts.RedirectURL, Scopes: []string{oidc.ScopeOpenID, "email"},
		},
		verifier: provider.Verifier(&oidc.Config{ClientID: p.opts.ClientID}),
	}
	return p.discovered, nil
}
