package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
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

	// Replaced is what was there before the last rotation. It is stored and never
	// shown.
	Replaced ReplacedCredentials
}

// ReplacedCredentials go on working until they end; the zero value is none.
type ReplacedCredentials struct {
	ClientID     string
	ClientSecret Secret
	Ends         time.Time
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

// Rotate makes new credentials for an account, beside which those that it has go
// on working until ends. Those of an earlier rotation end at once: no more than
// two are ever good.
func (i *Issuer) Rotate(c Credentials, organization, account string, ends time.Time) Credentials {
	next := i.NewCredentials(organization, account)
	if ends.After(time.Now()) {
		next.Replaced = ReplacedCredentials{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret,
			Ends: ends.UTC().Truncate(time.Second),
		}
	}
	return next
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

	Replaced *replacedCredentials `json:"replaced,omitempty"` // in the store only
}

type replacedCredentials struct {
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret"`
	Ends         time.Time `json:"ends"`
}

// File prints the credentials file, secret included, as it is handed out.
func (c Credentials) File() []byte {
	c.Replaced = ReplacedCredentials{}
	return c.Stored()
}

// Stored prints the credentials as they are stored: the file, and what it has
// replaced.
func (c Credentials) Stored() []byte {
	file := credentialsFile{
		Type:         CredentialsType,
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret.Reveal(),
		ClientEmail:  c.ClientEmail,
		IssuerURL:    c.IssuerURL,
	}
	if r := c.Replaced; r.ClientID != "" {
		file.Replaced = &replacedCredentials{r.ClientID, r.ClientSecret.Reveal(), r.Ends}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(file); err != nil {
		panic("identity: credentials do not marshal: " + err.Error()) // strings and a time
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
			return Credentials{},
				fmt.Errorf("%w: field issuer_url is not an http or https address", ErrInvalidCredentials)
		}
	}
	c := Credentials{
		ClientID:     file.ClientID,
		ClientSecret: NewSecret(file.ClientSecret),
		ClientEmail:  file.ClientEmail,
		IssuerURL:    file.IssuerURL,
	}
	if r := file.Replaced; r != nil && plainText(r.ClientID) && plainText(r.ClientSecret) {
		c.Replaced = ReplacedCredentials{r.ClientID, NewSecret(r.ClientSecret), r.Ends.UTC()}
	}
	return c, nil
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
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
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
