// Package passkey implements the server side of WebAuthn: it creates the options for a
// browser to create or use a passkey, and verifies the browser's response
// (docs/spec/signin.md#passkeys).
//
// It stores nothing: package signin stores the passkeys of users, and
// internal/surfaces/signinapi encrypts the state between request and response. The library
// github.com/go-webauthn/webauthn does the checks; this package configures it.
package passkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"freshet/internal/base/errs"
	"freshet/internal/identity/signin"
)

// ceremonyTimeout is the timeout of a WebAuthn ceremony in the browser.
const ceremonyTimeout = 10 * time.Minute

// errInvalidResponse is the error for a malformed or wrong response of a browser. A refusal adds the
// cause for the log.
var errInvalidResponse = errs.New(errs.Invalid, "browser did not send a valid passkey for this page; try again")

// RelyingParty is the WebAuthn relying party at one origin of the server. Passkeys are created for
// its host name, and used only at its origin.
type RelyingParty struct {
	web  *webauthn.WebAuthn
	host string
}

// New returns the relying party of an origin. It returns nil for origins at which browsers
// do not support passkeys: IP addresses, and names other than localhost without TLS.
func New(origin string) (*RelyingParty, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, fmt.Errorf("parsing the origin %q: %w", origin, err)
	}
	host := strings.ToLower(u.Hostname())
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if protocol.ValidateRPID(host) != nil || u.Scheme != "https" && !local {
		return nil, nil //nolint:nilnil,nilerr // such an origin is valid, but without passkeys
	}
	required := protocol.VerificationRequired
	web, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "Freshet", RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification:   required,
		},
		Timeouts: webauthn.TimeoutsConfig{
			Login:        webauthn.TimeoutConfig{Enforce: true, Timeout: ceremonyTimeout, TimeoutUVD: ceremonyTimeout},
			Registration: webauthn.TimeoutConfig{Enforce: true, Timeout: ceremonyTimeout, TimeoutUVD: ceremonyTimeout},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring passkeys for %s: %w", origin, err)
	}
	return &RelyingParty{web: web, host: host}, nil
}

// Host returns the host name for which passkeys are created.
func (p *RelyingParty) Host() string { return p.host }

// Request is a WebAuthn request to a browser, with the state to verify the response.
type Request struct {
	Options []byte               `json:"-"` // JSON for the browser
	Session webauthn.SessionData `json:"asked"`
}

// Challenge returns the random challenge of the request.
func (q *Request) Challenge() string { return q.Session.Challenge }

// ExpiresAt returns when the request expires.
func (q *Request) ExpiresAt() time.Time { return q.Session.Expires }

// webauthnUser implements webauthn.User for a user.
type webauthnUser struct {
	of      signin.Subject
	display string
	keys    []signin.Passkey
	host    string
}

func (o *webauthnUser) WebAuthnID() []byte          { return []byte(o.of.UID) }
func (o *webauthnUser) WebAuthnName() string        { return o.of.Email }
func (o *webauthnUser) WebAuthnDisplayName() string { return o.display }

// WebAuthnCredentials returns the passkeys of the user for this host.
func (o *webauthnUser) WebAuthnCredentials() []webauthn.Credential {
	var list []webauthn.Credential
	for _, k := range o.keys {
		if k.Host == o.host {
			list = append(list, webauthn.Credential{
				ID: k.ID, PublicKey: k.Public,
				Flags: webauthn.CredentialFlags{
					UserPresent: true, UserVerified: true, BackupEligible: k.Synced,
				},
				Authenticator: webauthn.Authenticator{SignCount: k.Count},
			})
		}
	}
	return list
}

// BeginRegistration creates the request for a new passkey of a user. It excludes devices that already
// have one of the passkeys in has.
func (p *RelyingParty) BeginRegistration(of signin.Subject, display string, has []signin.Passkey) (*Request, error) {
	user := &webauthnUser{of, display, has, p.host}
	creation, session, err := p.web.BeginRegistration(user,
		webauthn.WithExclusions(webauthn.Credentials(user.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, fmt.Errorf("creating a passkey registration request: %w", err)
	}
	return newRequest(creation.Response, session)
}

// FinishRegistration verifies the response to BeginRegistration for the same user, and returns the new passkey.
func (p *RelyingParty) FinishRegistration(q *Request, of signin.Subject, response string) (signin.Passkey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(response))
	if err != nil {
		return signin.Passkey{}, newResponseError(errInvalidResponse, err)
	}
	made, err := p.web.CreateCredential(&webauthnUser{of: of, host: p.host}, q.Session, parsed)
	if err != nil {
		return signin.Passkey{}, newResponseError(errInvalidResponse, err)
	}
	return signin.Passkey{
		ID: made.ID, Public: made.PublicKey, Host: p.host, Count: made.Authenticator.SignCount,
		Synced: made.Flags.BackupEligible,
	}, nil
}

// BeginSignIn creates the request for any passkey that the browser has for this host. It reveals no
// user or passkey.
func (p *RelyingParty) BeginSignIn() (*Request, error) {
	assertion, session, err := p.web.BeginDiscoverableLogin(
		webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("creating a passkey sign-in request: %w", err)
	}
	return newRequest(assertion.Response, session)
}

// Assertion is a verified use of a passkey.
type Assertion struct {
	Subject signin.Subject
	ID      []byte
	Count   uint32 // signature counter of the device
}

// FinishSignIn verifies the response to a sign-in request. find returns the user with the uid in
// the response and the user's passkeys. The error is signin.ErrWrongPasskey if the passkey
// does not match. An error of find is returned unchanged.
func (p *RelyingParty) FinishSignIn(q *Request, response string,
	find func(uid string) (signin.Subject, []signin.Passkey, error),
) (Assertion, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(response))
	if err != nil {
		return Assertion{}, newResponseError(errInvalidResponse, err)
	}
	var used Assertion
	var findErr error
	_, _, err = p.web.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		of, keys, err := find(string(handle))
		if err != nil {
			findErr = err
			return nil, err
		}
		used.Subject = of
		return &webauthnUser{of: of, keys: keys, host: p.host}, nil
	}, q.Session, parsed)
	switch {
	case findErr != nil:
		return Assertion{}, findErr
	case err != nil:
		return Assertion{Subject: used.Subject}, newResponseError(signin.ErrWrongPasskey, err)
	}
	used.ID, used.Count = parsed.RawID, parsed.Response.AuthenticatorData.Counter
	return used, nil
}

func newRequest(options any, session *webauthn.SessionData) (*Request, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding the WebAuthn options: %w", err)
	}
	return &Request{Options: text, Session: *session}, nil
}

// responseError is an error with a text for the user and a cause for the log.
type responseError struct {
	public error
	cause  error
}

func (r *responseError) Error() string   { return r.public.Error() }
func (r *responseError) Unwrap() []error { return []error{r.public, r.cause} }

func newResponseError(says, why error) error {
	var detail *protocol.Error
	if errors.As(why, &detail) {
		why = fmt.Errorf("%s: %s", detail.Details, detail.DevInfo)
	}
	return &responseError{says, why}
}
