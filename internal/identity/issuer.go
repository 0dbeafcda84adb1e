package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"
)

// Private claims that the discovery document lists. The struct claims repeats them,
// because a struct tag cannot use a constant.
const (
	UsernameClaim = "https://vendor.io/username"
	ScopeClaim    = "https://vendor.io/scope"
)

// Lifetimes of access tokens.
const (
	DefaultTokenLifetime = 24 * time.Hour
	MaxTokenLifetime     = 30 * 24 * time.Hour
)

// MaxMetadata bounds the extra claims of an API key, names and values together, in bytes.
const MaxMetadata = 4 << 10

const (
	audiencePrefix = "urn:vendor:messaging:"
	clientsSuffix  = "@clients"
	apiKeysSuffix  = "/apikeys"
	anyInstance    = "*"
)

// AnyOrganization is an audience for Verifier.Authenticate that accepts the API keys of any
// whole organization. The resource API passes it in addition to its own address.
const AnyOrganization = audiencePrefix + "*"

// InstanceAudience returns the audience of a data plane (docs/spec/resources.md#r10).
func InstanceAudience(organization, instance string) string {
	return audiencePrefix + organization + ":" + instance
}

// AnyInstance returns an audience for Verifier.Authenticate that accepts every credential
// for any data plane of an organization. No instance can have that name.
func AnyInstance(organization string) string { return InstanceAudience(organization, anyInstance) }

// OrganizationAudience returns the audience of API keys without an instance. They work at
// every data plane of the organization and at the resource API.
func OrganizationAudience(organization string) string { return audiencePrefix + organization }

// ParseInstanceAudience splits the audience of a data plane.
func ParseInstanceAudience(audience string) (organization, instance string, ok bool) {
	rest, ok := strings.CutPrefix(audience, audiencePrefix)
	if !ok {
		return "", "", false
	}
	organization, instance, ok = strings.Cut(rest, ":")
	if !ok || organization == "" || instance == "" || strings.Contains(instance, ":") {
		return "", "", false
	}
	return organization, instance, true
}

// Issuer issues access tokens and API keys.
type Issuer struct {
	url  string // without a trailing slash
	host string
	keys *Keyring
	now  func() time.Time
}

// NewIssuer returns the issuer with the URL baseURL.
func NewIssuer(baseURL string, keys *Keyring) (*Issuer, error) {
	u, err := parseBaseURL(baseURL)
	if err != nil {
		return nil, fmt.Errorf("parsing the issuer URL: %w", err)
	}
	return &Issuer{url: strings.TrimRight(baseURL, "/"), host: u.Host, keys: keys, now: time.Now}, nil
}

// SetClock sets the clock with which tokens are issued and verified, in place of that of the
// machine. Call it before the issuer is used.
func (i *Issuer) SetClock(now func() time.Time) { i.now = now }

// URL returns the issuer's URL without a trailing slash.
func (i *Issuer) URL() string { return i.url }

// Keys returns the keyring with which the issuer signs.
func (i *Issuer) Keys() *Keyring { return i.keys }

// PrincipalName returns the name of an account in ACLs, audit records and its credentials
// file: <account>@<organization>.<issuer host>. The host includes the port, because
// existing tools compute it so.
func (i *Issuer) PrincipalName(organization, account string) string {
	return account + "@" + organization + "." + i.host
}

// claims is the payload of access tokens and API keys.
type claims struct {
	Issuer    string            `json:"iss"`
	Subject   string            `json:"sub"`
	Audience  audience          `json:"aud"`
	IssuedAt  int64             `json:"iat"`
	NotBefore int64             `json:"nbf,omitempty"`
	Expiry    int64             `json:"exp,omitempty"`
	ID        string            `json:"jti"`
	Username  string            `json:"https://vendor.io/username"`
	Scopes    []string          `json:"https://vendor.io/scope,omitempty"`
	Scope     string            `json:"scope,omitempty"`
	UID       string            `json:"https://vendor.io/uid"`
	SessionID string            `json:"sid,omitempty"` // only in tokens of sessions
	Sources   []source          `json:"https://vendor.io/sources,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// audience is a string or a list of strings (RFC 7519 §4.1.3).
type audience []string

// MarshalJSON encodes a single audience as a string, the usual form in access tokens.
func (a audience) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSON decodes a string or a list.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

func marshalClaims(c any) ([]byte, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding claims: %w", err)
	}
	return payload, nil
}

// AccessToken issues a token for the account and the audiences. A lifetime of 0 means
// DefaultTokenLifetime. AccessToken reduces the lifetime to MaxTokenLifetime, and to the
// end of replaced credentials.
func (i *Issuer) AccessToken(account *Account, lifetime time.Duration, audiences ...string) (Secret, time.Time, error) {
	now := i.now().Truncate(time.Second)
	return i.accessToken(account, now, tokenExpiry(account, lifetime, now), nil, audiences)
}

// tokenExpiry returns when a token expires that is issued now.
func tokenExpiry(account *Account, lifetime time.Duration, now time.Time) time.Time {
	switch {
	case lifetime <= 0:
		lifetime = DefaultTokenLifetime
	case lifetime > MaxTokenLifetime:
		lifetime = MaxTokenLifetime
	}
	expires := now.Add(lifetime)
	if ends := account.Replaced.Ends; account.ClientID == account.Replaced.ID && ends.Before(expires) {
		expires = ends.Truncate(time.Second) // not after the credentials of the request
	}
	return expires
}

func (i *Issuer) accessToken(account *Account, now, expires time.Time, sources []source, audiences []string,
) (Secret, time.Time, error) {
	scopes := account.Scopes()
	token, err := i.keys.sign(claims{
		Issuer:   i.url,
		Subject:  account.ClientID + clientsSuffix,
		Audience: audiences,
		IssuedAt: now.Unix(),
		Expiry:   expires.Unix(),
		ID:       randomText(16),
		Username: i.PrincipalName(account.Organization, account.Name),
		Scopes:   scopes,
		Scope:    strings.Join(scopes, " "),
		UID:      account.UID,
		Sources:  sources,
	})
	return token, expires, err
}

// KeyRequest describes the API key to issue.
type KeyRequest struct {
	Account   *Account
	Name      string            // the APIKey resource
	Instance  string            // "" for every instance of the organization, and the resource API
	ExpiresAt time.Time         // zero for never
	Metadata  map[string]string // extra claims
}

// signingKeySeparator separates the random part of an API key's id from the id of the signing key.
const signingKeySeparator = "."

// Withdrawn reports whether the signing key of an API key was withdrawn, so that its token
// never verifies again. It returns false for ids of earlier versions, which do not contain
// the signing key.
func (i *Issuer) Withdrawn(keyID string) bool {
	_, kid, hasSigningKey := strings.Cut(keyID, signingKeySeparator)
	return hasSigningKey && !i.keys.Contains(kid)
}

// OnWithdrawal registers f, which is called when results of Withdrawn may have changed. f
// must not block.
func (i *Issuer) OnWithdrawal(f func()) { i.keys.OnChange(f) }

// APIKey issues an API key. The Key contains the hash of the token and is the argument of
// Directory.PutKey. The token is only for the caller and must not be stored.
func (i *Issuer) APIKey(req KeyRequest) (Key, Secret, error) {
	now := i.now().Truncate(time.Second)
	if err := req.check(now); err != nil {
		return Key{}, Secret{}, err
	}
	aud := OrganizationAudience(req.Account.Organization)
	if req.Instance != "" {
		aud = InstanceAudience(req.Account.Organization, req.Instance)
	}
	signing := i.keys.current.Load()
	key := Key{
		ID:           randomText(16) + signingKeySeparator + signing.state.Active,
		Name:         req.Name,
		Organization: req.Account.Organization,
		Account:      req.Account.Name,
		AccountUID:   req.Account.UID,
		Instance:     req.Instance,
		IssuedAt:     now,
		Metadata:     maps.Clone(req.Metadata),
	}
	name := i.PrincipalName(req.Account.Organization, req.Account.Name)
	c := claims{
		Issuer:   i.url + apiKeysSuffix,
		Subject:  name,
		Audience: audience{aud},
		IssuedAt: now.Unix(),
		ID:       key.ID,
		Username: name,
		UID:      req.Account.UID,
		Metadata: req.Metadata,
	}
	if !req.ExpiresAt.IsZero() {
		// Rounded down to seconds, so that the token does not outlive the resource.
		key.ExpiresAt = req.ExpiresAt.Truncate(time.Second).UTC()
		c.Expiry = key.ExpiresAt.Unix()
	}
	token, err := signing.sign(c)
	if err != nil {
		return Key{}, Secret{}, err
	}
	key.Hash = HashToken(token)
	return key, token, nil
}

func (r KeyRequest) check(now time.Time) error {
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.Truncate(time.Second).After(now) {
		return &InputError{InputExpiresAt, "must be in the future"}
	}
	size := 0
	for name, value := range r.Metadata {
		size += len(name) + len(value)
	}
	if size > MaxMetadata {
		return &InputError{
			InputMetadata,
			fmt.Sprintf("names and values together must not be longer than %d bytes", MaxMetadata),
		}
	}
	return nil
}

// CanonicalURL normalizes a base URL for comparison: it lower-cases the host and removes
// default ports and trailing slashes. It returns other texts unchanged.
func CanonicalURL(text string) string {
	u, err := parseBaseURL(text)
	if err != nil {
		return text
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	out := url.URL{Scheme: u.Scheme, Host: host, Path: strings.TrimRight(u.Path, "/")}
	return out.String()
}
