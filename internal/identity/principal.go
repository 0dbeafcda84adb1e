package identity

import (
	"log/slog"
	"time"
)

// Principal is a caller whose credential was verified. The verifier hands the
// same value to every request that carries the same token: read it, never
// change it.
type Principal struct {
	// <account>@<organization>.<issuer host>, of people UserPrincipalName; in audit records and ACLs
	Name           string
	Organization   string            // the namespace the account lives in
	ServiceAccount string            // the account's name; "" for users
	UID            string            // the account's uid; a recreated account has another
	User           string            // the user's name; "" for service accounts
	System         bool              // the system administrator: every organization
	Admin          bool              // administrator of its own organization
	KeyID          string            // the API key used, "" for an access token
	KeyName        string            // the APIKey resource of that key
	Instance       string            // the instance the credential is good for, "" for any of the organization
	SessionID      string            // of a person's token, or one that came by a one-time link; else ""
	TokenID        string            // the token's jti
	ExpiresAt      time.Time         // when the credential ends, zero for never
	Metadata       map[string]string // extra claims of an API key

	entry *entry // what the verifier knows; nil for principals made by hand
	plane name   // of an organization's key: the instance at whose data plane it is
}

// Live says whether the credential is still good: a long-lived call (a watch, a
// waiting consumer) asks again before it hands something out. Principals that
// no verifier made are always live.
func (p *Principal) Live() bool {
	if p == nil || p.entry == nil {
		return p != nil
	}
	if _, err := p.admitted(); err != nil {
		return false
	}
	return p.entry.check(time.Now()) == nil
}

// admitted refuses an organization's key where keys are not accepted.
func (p *Principal) admitted() (*Principal, error) {
	if p.plane.name != "" && p.entry.dir.refusesKeys(p.plane) {
		return nil, ErrKeyNotAccepted
	}
	return p, nil
}

// LogValue names the principal in log records without anything secret.
func (p *Principal) LogValue() slog.Value {
	if p == nil {
		return slog.StringValue("")
	}
	return slog.StringValue(p.Name)
}
