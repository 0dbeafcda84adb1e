package identity

import (
	"log/slog"
	"time"
)

// Principal is a caller whose credential was verified. The verifier returns the same value
// for every request with the same token; callers must not change it.
type Principal struct {
	// Name is the name in audit records and ACLs: PrincipalName or UserPrincipalName.
	Name           string
	Organization   string            // the namespace of the account or user
	ServiceAccount string            // the account's name; "" for users
	UID            string            // the account's uid; a recreated account has another
	User           string            // the user's name; "" for service accounts
	System         bool              // administrator of all organizations
	Admin          bool              // administrator of its own organization
	KeyID          string            // the API key used, "" for an access token
	KeyName        string            // the APIKey resource of that key
	Instance       string            // the instance of the credential, "" for any of the organization
	SessionID      string            // the session of the token (of a user, or by a one-time link), else ""
	TokenID        string            // the token's jti
	ExpiresAt      time.Time         // when the credential expires, zero for never
	Metadata       map[string]string // extra claims of an API key

	entry *entry // the verified token; nil for principals that no verifier created
	plane name   // for an organization's key: the instance at whose data plane it is used
}

// Live reports whether the credential is still valid. A long-lived call (a watch, a
// waiting consumer) calls it again before it returns data. Principals that no verifier
// created are always live.
func (p *Principal) Live() bool {
	if p == nil || p.entry == nil {
		return p != nil
	}
	if _, err := p.admitted(); err != nil {
		return false
	}
	return p.entry.check(p.entry.now()) == nil
}

// admitted returns ErrKeyNotAccepted for an organization's key at an instance that rejects
// API keys.
func (p *Principal) admitted() (*Principal, error) {
	if p.plane.name != "" && p.entry.dir.rejectsKeys(p.plane) {
		return nil, ErrKeyNotAccepted
	}
	return p, nil
}

// LogValue logs the principal's name.
func (p *Principal) LogValue() slog.Value {
	if p == nil {
		return slog.StringValue("")
	}
	return slog.StringValue(p.Name)
}
