package identity

import "log/slog"

// Principal is a caller whose credential was verified.
type Principal struct {
	Name           string            // <account>@<organization>.<issuer host>; in audit records and ACLs
	Organization   string            // the namespace the account lives in
	ServiceAccount string            // the account's name; "" for users
	User           string            // the user's name; "" for service accounts
	System         bool              // the system administrator: every organization
	Admin          bool              // administrator of its own organization
	KeyID          string            // the API key used, "" for an access token
	Instance       string            // the instance the credential is good for, "" for any of the organization
	Metadata       map[string]string // extra claims of an API key
}

// LogValue names the principal in log records without anything secret.
func (p *Principal) LogValue() slog.Value {
	if p == nil {
		return slog.StringValue("")
	}
	return slog.StringValue(p.Name)
}
