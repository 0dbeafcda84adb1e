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

// patience is the timeout of a WebAuthn ceremony in the browser.
const patience = 10 * time.Minute

// errAnswer is the error for a malformed or wrong response of a browser. A refusal adds the
// cause for the log.
var errAnswer = errs.New(errs.Invalid, "browser did not send a valid passkey for this page; try again")

// Party is the WebAuthn relying party at one origin of the server. Passkeys are created for
// its host name, and used only at its origin.
type Party struct {
	web  *webauthn.WebAuthn
	host string
}

// New returns the relying party of an origin. It returns nil for origins at which browsers
// do not support passkeys: IP addresses, and names other than localhost without TLS.
func New(origin string) (*Party, error) {
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
			Login:        webauthn.TimeoutConfig{Enforce: true, Timeout: patience, TimeoutUVD: patience},
			Registration: webauthn.TimeoutConfig{Enforce: true, Timeout: patience, TimeoutUVD: patience},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring passkeys for %s: %w", origin, err)
	}
	return &Party{web: web, host: host}, nil
}

// Host returns the host name for which passkeys are created.
func (p *Party) Host() string { return p.host }

// Question is a WebAuthn request to a browser, with the state to verify the response.
type Question struct {
	Options []byte               `json:"-"` // JSON for the browser
	Asked   webauthn.SessionData `json:"asked"`
}

// Challenge returns the random challenge of the request.
func (q *Question) Challenge() string { return q.Asked.Challenge }

// Ends returns when the request expires.
func (q *Question) Ends() time.Time { return q.Asked.Expires }

// owner implements webauthn.User for a user.
type owner struct {
	of      signin.Subject
	display string
	keys    []signin.Passkey
	host    string
}

func (o *owner) WebAuthnID() []byte          { return []byte(o.of.UID) }
func (o *owner) WebAuthnName() string        { return o.of.Email }
func (o *owner) WebAuthnDisplayName() string { return o.display }

// WebAuthnCredentials returns the passkeys of the user for this host.
func (o *owner) WebAuthnCredentials() []webauthn.Credential {
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

// AskNew creates the request for a new passkey of a user. It excludes devices that already
// have one of the passkeys in has.
func (p *Party) AskNew(of signin.Subject, display string, has []signin.Passkey) (*Question, error) {
	who := &owner{of, display, has, p.host}
	creation, asked, err := p.web.BeginRegistration(who,
		webauthn.WithExclusions(webauthn.Credentials(who.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, fmt.Errorf("creating a passkey registration request: %w", err)
	}
	return question(creation.Response, asked)
}

// New verifies the response to AskNew for the same user, and returns the new passkey.
func (p *Party) New(q *Question, of signin.Subject, answer string) (signin.Passkey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return signin.Passkey{}, refused(errAnswer, err)
	}
	made, err := p.web.CreateCredential(&owner{of: of, host: p.host}, q.Asked, parsed)
	if err != nil {
		return signin.Passkey{}, refused(errAnswer, err)
	}
	return signin.Passkey{
		ID: made.ID, Public: made.PublicKey, Host: p.host, Count: made.Authenticator.SignCount,
		Synced: made.Flags.BackupEligible,
	}, nil
}

// Ask creates the request for any passkey that the browser has for this host. It reveals no
// user or passkey.
func (p *Party) Ask() (*Question, error) {
	assertion, asked, err := p.web.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("creating a passkey sign-in request: %w", err)
	}
	return question(assertion.Response, asked)
}

// Used is a verified use of a passkey.
type Used struct {
	Of    signin.Subject
	ID    []byte
	Count uint32 // signature counter of the device
}

// Check verifies the response to a sign-in request. find returns the user with the uid in
// the response and the user's passkeys. The error is signin.ErrWrongPasskey if the passkey
// does not match. An error of find is returned unchanged.
func (p *Party) Check(q *Question, answer string,
	find func(uid string) (signin.Subject, []signin.Passkey, error),
) (Used, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if err != nil {
		return Used{}, refused(errAnswer, err)
	}
	var used Used
	var trouble error
	_, _, err = p.web.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		of, keys, err := find(string(handle))
		if err != nil {
			trouble = err
			return nil, err
		}
		used.Of = of
		return &owner{of: of, keys: keys, host: p.host}, nil
	}, q.Asked, parsed)
	switch {
	case trouble != nil:
		return Used{}, trouble
	case err != nil:
		return Used{Of: used.Of}, refused(signin.ErrWrongPasskey, err)
	}
	used.ID, used.Count = parsed.RawID, parsed.Response.AuthenticatorData.Counter
	return used, nil
}

func question(options any, asked *webauthn.SessionData) (*Question, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding the WebAuthn options: %w", err)
	}
	return &Question{Options: text, Asked: *asked}, nil
}

// refusal is an error with a text for the user and a cause for the log.
type refusal struct {
	says error
	why  error
}

func (r *refusal) Error() string   { return r.says.Error() }
func (r *refusal) Unwrap() []error { return []error{r.says, r.why} }

func refused(says, why error) error {
	var detail *protocol.Error
	if errors.As(why, &detail) {
		why = fmt.Errorf("%s: %s", detail.Details, detail.DevInfo)
	}
	return &refusal{says, why}
}
