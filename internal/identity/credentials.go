package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// CredentialsType is the type field of a service account's credentials file
// (docs/spec/resources.md#r6).
const CredentialsType = "vendor_service_account"

// MaxCredentialsFile is the maximum size of a credentials file in bytes.
const MaxCredentialsFile = 64 << 10

// maxIdentifier bounds client ids and names in credentials files, in bytes.
const maxIdentifier = 512

// Credentials are the contents of a service account's credentials file.
type Credentials struct {
	ClientID     string
	ClientSecret Secret
	ClientEmail  string // the principal name
	IssuerURL    string // "" in files of older tools

	// Replaced are the credentials before the last rotation. They are stored, but not
	// part of the credentials file.
	Replaced ReplacedCredentials
}

// ReplacedCredentials are credentials that work until Ends; the zero value is none.
type ReplacedCredentials struct {
	ClientID     string
	ClientSecret Secret
	Ends         time.Time
}

// NewCredentials generates credentials for an account.
func (i *Issuer) NewCredentials(organization, account string) Credentials {
	return Credentials{
		ClientID:     randomText(24),
		ClientSecret: GenerateSecret(),
		ClientEmail:  i.PrincipalName(organization, account),
		IssuerURL:    i.url,
	}
}

// Rotate generates new credentials for an account. Its current credentials work until
// ends. Those of an earlier rotation stop working immediately, so that at most two are
// valid.
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

// WithCurrentURL returns credentials with the current URL of the issuer. Credentials stay valid
// when the issuer's URL changes, but stored ones contain the old URL.
func (i *Issuer) WithCurrentURL(c Credentials, organization, account string) Credentials {
	c.ClientEmail, c.IssuerURL = i.PrincipalName(organization, account), i.url
	return c
}

// credentialsFile is the JSON form. Only this file uses it, because it does not redact the
// secret when it is printed.
type credentialsFile struct {
	Type         string `json:"type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientEmail  string `json:"client_email"`
	IssuerURL    string `json:"issuer_url,omitempty"`

	Replaced *replacedCredentials `json:"replaced,omitempty"` // only in the store
}

type replacedCredentials struct {
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret"`
	Ends         time.Time `json:"ends"`
}

// File returns the credentials file for the user, including the secret.
func (c Credentials) File() []byte {
	c.Replaced = ReplacedCredentials{}
	return c.Stored()
}

// Stored returns the credentials in the form of the store: the file with Replaced.
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
		panic("identity: encoding credentials: " + err.Error()) // cannot fail for strings and a time
	}
	return buf.Bytes()
}

// ParseCredentials reads a credentials file. It ignores unknown fields. Its errors never
// quote the file, because it contains a secret.
func ParseCredentials(data []byte) (Credentials, error) {
	if len(data) > MaxCredentialsFile {
		return Credentials{}, fmt.Errorf("%w: larger than %d bytes", ErrInvalidCredentials, MaxCredentialsFile)
	}
	var file credentialsFile
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &file); err != nil {
		return Credentials{}, fmt.Errorf("%w: not a JSON object of strings", ErrInvalidCredentials)
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
				fmt.Errorf("%w: field issuer_url is not an http or https URL", ErrInvalidCredentials)
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

// plainText reports whether s is a non-empty, bounded string without spaces and control
// characters, so that it can be sent in a header.
func plainText(s string) bool {
	return s != "" && len(s) <= maxIdentifier && !strings.ContainsFunc(s, func(r rune) bool {
		return r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// parseBaseURL accepts http(s)://host[:port][/path] without user, query and fragment.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", text)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an http or https URL without user, query and fragment", text)
	}
	return u, nil
}

// IsBaseURL reports whether text is a valid URL of an issuer or an audience: http or
// https, without user, query and fragment.
func IsBaseURL(text string) bool {
	_, err := parseBaseURL(text)
	return err == nil
}

// Authenticate returns the account of a client id and secret. An unknown id takes as long
// as a wrong secret, so that the response time does not reveal which ids exist.
func Authenticate(dir *Directory, sealer *Sealer, clientID string, secret Secret) (*Account, error) {
	account, ok := dir.AccountByClientID(clientID)
	hash := sealer.ring.Load().decoy // compared for an unknown id
	if ok {
		hash = account.SecretHash
	}
	if !sealer.CheckSecret(hash, secret) || !ok {
		return nil, ErrInvalidClient
	}
	return account, nil
}
