// Package passkey speaks WebAuthn: what a browser is asked for so that a device makes
// or uses a passkey, and whether its answer is good (docs/spec/signin.md#passkeys).
//
// It keeps nothing: who has which passkeys is signin's, and what a browser takes along
// from the question to the answer is sealed by signinapi. The checks are those of
// github.com/go-webauthn/webauthn; what they are held to is decided here.
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

// patience is how long a browser waits for a person.
const patience = 10 * time.Minute

// errAnswer says that a browser has sent something that is not an answer to the
// question. What exactly is in what it wraps, for the log.
var errAnswer = errs.New(errs.Invalid, "what the browser sent is not a passkey of this page: try again")

// Party is the server at one of its addresses: passkeys are made for its host name,
// and used at this address only.
type Party struct {
	web  *webauthn.WebAuthn
	host string
}

// New makes the party of an origin; nil where browsers have no passkeys: at numeric
// addresses, and without TLS at any name but localhost.
func New(origin string) (*Party, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", origin, err)
	}
	host := strings.ToLower(u.Hostname())
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if protocol.ValidateRPID(host) != nil || u.Scheme != "https" && !local {
		return nil, nil //nolint:nilnil,nilerr // such an address is no mistake
	}
	required := protocol.VerificationRequired
	web, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "Freshet", RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: required,
		},
		Timeouts: webauthn.TimeoutsConfig{
			Login:        webauthn.TimeoutConfig{Enforce: true, Timeout: patience, TimeoutUVD: patience},
			Registration: webauthn.TimeoutConfig{Enforce: true, Timeout: patience, TimeoutUVD: patience},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys at %s: %w", origin, err)
	}
	return &Party{web: web, host: host}, nil
}

// Host is the name that passkeys are made for.
func (p *Party) Host() string { return p.host }

// Question is what is asked of a browser, and what is needed to check the answer.
type Question struct {
	Options []byte               `json:"-"` // for the browser, as its JSON
	Asked   webauthn.SessionData `json:"asked"`
}

// Challenge is what makes the question the only one of its kind.
func (q *Question) Challenge() string { return q.Asked.Challenge }

// Ends is until when it may be answered.
func (q *Question) Ends() time.Time { return q.Asked.Expires }

// owner is a person as WebAuthn sees them.
type owner struct {
	of      signin.Subject
	display string
	keys    []signin.Passkey
	host    string
}

func (o *owner) WebAuthnID() []byte          { return []byte(o.of.UID) }
func (o *owner) WebAuthnName() string        { return o.of.Email }
func (o *owner) WebAuthnDisplayName() string { return o.display }

// WebAuthnCredentials are those that are good at this host.
func (o *owner) WebAuthnCredentials() []webauthn.Credential {
	var list []webauthn.Credential
	for _, k := range o.keys {
		if k.Host == o.host {
			list = append(list, webauthn.Credential{
				ID: k.ID, PublicKey: k.Public,
				Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: k.Synced},
				Authenticator: webauthn.Authenticator{SignCount: k.Count},
			})
		}
	}
	return list
}

// AskNew asks for a new passkey of a person, from a device that has none of them yet.
func (p *Party) AskNew(of signin.Subject, display string, has []signin.Passkey) (*Question, error) {
	who := &owner{of, display, has, p.host}
	creation, asked, err := p.web.BeginRegistration(who,
		webauthn.WithExclusions(webauthn.Credentials(who.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, fmt.Errorf("asking for a new passkey: %w", err)
	}
	return question(creation.Response, asked)
}

// New checks the answer to AskNew, which was of the same person.
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

// Ask asks for any passkey that the browser has for this host. The question is the
// same for everybody.
func (p *Party) Ask() (*Question, error) {
	assertion, asked, err := p.web.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("asking for a passkey: %w", err)
	}
	return question(assertion.Response, asked)
}

// Used is a passkey that has signed.
type Used struct {
	Of    signin.Subject
	ID    []byte
	Count uint32 // how often it has, as its device counts
}

// Check checks the answer to Ask. find looks up the person whom the passkey names as
// its owner. Whatever is wrong is signin.ErrWrongPasskey, but for trouble of find.
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
		return nil, fmt.Errorf("writing what is asked of the browser: %w", err)
	}
	return &Question{Options: text, Asked: *asked}, nil
}

// refusal says what to do, and for the log what was wrong.
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
