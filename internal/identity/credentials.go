package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"unicode"
)

// CredentialsType is the type field of a service account's credentials file
// (docs/spec/resources.md#r6).
const CredentialsType = "vendor_service_account"

// MaxCredentialsFile bounds what ParseCredentials reads.
const MaxCredentialsFile = 64 << 10

// maxIdentifier bounds client ids and names taken from outside.
const maxIdentifier = 512

// Credentials are what a service account proves itself with: the contents of
// its credentials file.
type Credentials struct {
	ClientID     string
	ClientSecret Secret
	ClientEmail  string // the principal name
	IssuerURL    string // "" in files of older tools
}

// NewCredentials makes fresh credentials for an account.
func (i *Issuer) NewCredentials(organization, account string) Credentials {
	return Credentials{
		ClientID:     randomText(24),
		ClientSecret: GenerateSecret(),
		ClientEmail:  i.PrincipalName(organization, account),
		IssuerURL:    i.url,
	}
}

// Readdress says where credentials are good now. They stay good when the issuer
// moves; a file that was written before names the old place.
func (i *Issuer) Readdress(c Credentials, organization, account string) Credentials {
	c.ClientEmail, c.IssuerURL = i.PrincipalName(organization, account), i.url
	return c
}

// credentialsFile is the wire form. It exists only inside this file, since it
// would print its secret.
type credentialsFile struct {
	Type         string `json:"type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientEmail  string `json:"client_email"`
	IssuerURL    string `json:"issuer_url,omitempty"`
}

// File prints the credentials file, secret included.
func (c Credentials) File() []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(credentialsFile{
		Type:         CredentialsType,
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret.Reveal(),
		ClientEmail:  c.ClientEmail,
		IssuerURL:    c.IssuerURL,
	})
	if err != nil {
		panic("identity: credentials do not marshal: " + err.Error()) // strings only
	}
	return buf.Bytes()
}

// ParseCredentials reads a credentials file. Fields it does not know are
// passed over; its errors never quote the file.
func ParseCredentials(data []byte) (Credentials, error) {
	if len(data) > MaxCredentialsFile {
		return Credentials{}, fmt.Errorf("%w: larger than %d bytes", ErrInvalidCredentials, MaxCredentialsFile)
	}
	var file credentialsFile
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &file); err != nil {
		return Credentials{}, fmt.Errorf("%w: it is not a JSON object of strings", ErrInvalidCredentials)
	}
	switch {
	case file.Type != CredentialsType:
		return Credentials{}, fmt.Errorf("%w: field type must be %q", ErrInvalidCredentials, CredentialsType)
	case !plainText(file.ClientID):
		return Credentials{}, fmt.Errorf("%w: field client_id is missing or malformed", ErrInvalidCredentials)
	case !plainText(file.ClientSecret):
		return Credentials{}, fmt.Errorf("%w: field client_secret is missing or malformed", ErrInvalidCredentials)
	case file.ClientEmail != "" && !plainText(file.ClientEmail):
		return Credentials{}, fmt.Errorf("%w: field client_email is malformed", ErrInvalidCredentials)
	}
	if file.IssuerURL != "" {
		if _, err := parseBaseURL(file.IssuerURL); err != nil {
			return Credentials{}, fmt.Errorf("%w: field issuer_url is not an http or https address", ErrInvalidCredentials)
		}
	}
	return Credentials{
		ClientID:     file.ClientID,
		ClientSecret: NewSecret(file.ClientSecret),
		ClientEmail:  file.ClientEmail,
		IssuerURL:    file.IssuerURL,
	}, nil
}

// plainText accepts a non-empty, bounded text without spaces and control
// characters: what can travel in a header.
func plainText(s string) bool {
	if s == "" || len(s) > maxIdentifier {
		return false
	}
	for _, r := range s {
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// parseBaseURL accepts http(s)://host[:port][/path] and nothing more.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse %q: not a URL", text)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not a plain http or https address", text)
	}
	return u, nil
}

// IsBaseURL reports whether text is an address as issuers and audiences have
// them: http or https, without user, query and fragment.
func IsBaseURL(text string) bool {
	_, err := parseBaseURL(text)
	return err == nil
}

// Authenticate finds the account that a client id and secret belong to. An
// unknown id costs as much as a wrong secret.
func Authenticate(dir *Directory, sealer *Sealer, clientID string, secret Secret) (*Account, error) {
	account, ok := dir.AccountByClientID(clientID)
	hash := sealer.ring.Load().decoy // so that there is as much to compare
	if ok {
		hash = account.SecretHash
	}
	if !sealer.CheckSecret(hash, secret) || !ok {
		return nil, ErrInvalidClient
	}
	return account, nil
}
