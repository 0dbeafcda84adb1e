// Package openid asks an OpenID provider elsewhere who somebody is: authorization
// code with state, nonce and PKCE, and an address that the provider has verified
// (docs/spec/signin.md#provider).
//
// It knows nothing of users and sessions: what it returns is an e-mail address that
// the provider vouches for, and signinapi decides whose that is.
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

// Options says where the provider is and who we are to it.
type Options struct {
	Issuer       string
	ClientID     string
	ClientSecret identity.Secret
	RedirectURL  string
	Domains      []string // of addresses that it may vouch for; none: of all
	Client       *http.Client
}

// Provider is a provider elsewhere. It is asked where its endpoints are when it is
// first needed: one that is down does not keep the server from starting.
type Provider struct {
	opts Options

	mu    sync.Mutex // guards known; held over the discovery
	known *known
}

type known struct {
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// The refusals of a sign-in.
var (
	ErrUnavailable = errs.New(errs.Unavailable, "the OpenID provider does not answer: try again later")
	ErrNotProven   = errs.New(errs.Unauthenticated, "the OpenID provider did not confirm who you are: begin again")
	ErrNoEmail     = errs.New(errs.Denied,
		"the OpenID provider does not vouch for an e-mail address of yours that this server accepts")
)

const patience = 10 * time.Second

// New makes a provider; nothing is asked yet.
func New(opts Options) *Provider {
	if opts.Client == nil {
		opts.Client = &http.Client{Timeout: patience}
	}
	return &Provider{opts: opts}
}

// Trusts says whether the provider may vouch for an address.
func (p *Provider) Trusts(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	if !ok {
		return false
	}
	return len(p.opts.Domains) == 0 ||
		slices.ContainsFunc(p.opts.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// Login is what the browser keeps between going to the provider and coming back.
type Login struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// Begin returns where to send a browser, and what it has to bring back.
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

// Finish exchanges the code that a browser has brought, and returns the address that
// the provider vouches for.
func (p *Provider) Finish(ctx context.Context, login Login, state, code string) (email string, err error) {
	if login.State == "" || subtle.ConstantTimeCompare([]byte(login.State), []byte(state)) != 1 || code == "" {
		return "", ErrNotProven
	}
	k, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.opts.Client), patience)
	defer cancel()
	token, err := k.oauth.Exchange(ctx, code, oauth2.VerifierOption(login.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil &&
			refused.Response.StatusCode < http.StatusInternalServerError {
			return "", ErrNotProven
		}
		return "", errs.Newf(errs.Unavailable, "%w: %v", ErrUnavailable, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return "", ErrNotProven
	}
	proof, err := k.verifier.Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotProven, err)
	}
	if subtle.ConstantTimeCompare([]byte(proof.Nonce), []byte(login.Nonce)) != 1 {
		return "", ErrNotProven
	}
	var claims struct {
		Email    string   `json:"email"`
		Verified verified `json:"email_verified"`
	}
	if err := proof.Claims(&claims); err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNotProven, err)
	}
	if claims.Email == "" || !bool(claims.Verified) || !p.Trusts(claims.Email) {
		return "", ErrNoEmail
	}
	return claims.Email, nil
}

// verified is true, also as text: some providers write it so.
type verified bool

// UnmarshalJSON implements json.Unmarshaler.
func (v *verified) UnmarshalJSON(data []byte) error {
	text := string(data)
	*v = text == "true" || text == `"true"`
	return nil
}

// discover finds the provider's endpoints and keys, once.
func (p *Provider) discover(ctx context.Context) (*known, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	// The provider keeps the context for fetching keys later, so it must not end
	// with this request; the client has a timeout of its own.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.opts.Client), p.opts.Issuer)
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "%w: %v", ErrUnavailable, err)
	}
	p.known = &known{
		oauth: oauth2.Config{
			ClientID: p.opts.ClientID, ClientSecret: p.opts.ClientSecret.Reveal(), Endpoint: found.Endpoint(),
			RedirectURL: p.opts.RedirectURL, Scopes: []string{oidc.ScopeOpenID, "email"},
		},
		verifier: found.Verifier(&oidc.Config{ClientID: p.opts.ClientID}),
	}
	return p.known, nil
}
