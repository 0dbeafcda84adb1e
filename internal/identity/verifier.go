package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxToken bounds the size of a token. Tokens of this server have less than 2 KiB,
	// plus the metadata of an API key.
	maxToken = 16 << 10
	// clockSkew is how far in the future a token may become valid (nbf). Expiry has no
	// tolerance. The time of issue (iat) is not checked: another member whose clock is
	// ahead may have issued the token, and its signature shows that a member did.
	clockSkew = 30 * time.Second
	// DefaultTokenCache is the default number of cached tokens.
	DefaultTokenCache = 100_000
)

// VerifierOptions configure a Verifier; the zero value is usable.
type VerifierOptions struct {
	// CacheSize bounds the number of cached tokens; 0 means DefaultTokenCache.
	CacheSize int
}

// Verifier returns the principal of a token, for every surface.
//
// It checks a token's signature once. After that it finds the token in a cache by its
// SHA-256 and checks only what can change: expiry, the account, the key, the signing key.
// All of these are atomic loads of records that the Directory writes synchronously, so a
// deletion or revocation is in force when its call returns.
type Verifier struct {
	issuer *Issuer
	dir    *Directory
	cache  *tokenCache
}

// NewVerifier returns a verifier for the tokens that issuer issues to accounts and users
// of the directory.
func NewVerifier(issuer *Issuer, dir *Directory, opts VerifierOptions) *Verifier {
	if opts.CacheSize <= 0 {
		opts.CacheSize = DefaultTokenCache
	}
	return &Verifier{
		issuer: issuer,
		dir:    dir,
		cache:  newTokenCache(opts.CacheSize),
	}
}

// entry is a verified token: its principal and the records on which it depends. The fields
// …Was are the states at the verification.
type entry struct {
	principal  Principal
	audience   []string
	orgPrefix  string // prefix of the audiences of the organization's data planes, if it is accepted at all of them
	kid        string
	keys       *Keyring
	notBefore  time.Time
	now        func() time.Time // the issuer's clock
	account    *accountRecord   // nil for users
	accountWas *Account
	clientID   string         // for an access token: the client id that requested it
	session    *sessionRecord // nil for tokens without a session
	user       *userRecord    // nil for accounts
	userWas    *User
	key        *keyRecord // nil for access tokens
	keyWas     *Key
	sources    []*entry // credentials with which the token was requested; see source
	sourcesAre []source // the same, as claims
	dir        *Directory
	planes     sync.Map // for an organization's key: its *Principal at each data plane, by audience
	used       atomicStamp
}

// Authenticate checks a token and returns its principal. audiences are those of the
// caller's surface; without any, no token is accepted. Errors are of kind Unauthenticated,
// or Unavailable if this server cannot check tokens at the moment.
func (v *Verifier) Authenticate(ctx context.Context, token string, audiences ...string) (*Principal, error) {
	if token == "" {
		return nil, ErrNoToken
	}
	if len(token) > maxToken {
		return nil, ErrInvalidToken
	}
	now := v.issuer.now()
	hash := hashText(token)
	if e := v.cache.get(hash, now); e != nil {
		err := e.check(now)
		if err == nil {
			return e.admit(audiences)
		}
		if errors.Is(err, ErrKeyRevoked) || errors.Is(err, ErrTokenExpired) || errors.Is(err, ErrNotCurrent) ||
			errors.Is(err, ErrKeyNotAccepted) {
			return nil, err // the entry stays cached, because rejecting from the cache is cheap
		}
		v.cache.drop(hash)
	}
	e, err := v.verify(ctx, token, hash)
	if err != nil {
		return nil, err
	}
	if err := e.check(now); err != nil {
		return nil, err
	}
	v.cache.put(hash, e, now)
	return e.admit(audiences)
}

// check checks everything about a verified token that can change.
func (e *entry) check(now time.Time) error {
	if current := e.dir.current; current != nil && !current() {
		return ErrNotCurrent
	}
	for _, s := range e.sources {
		if s.check(now) != nil {
			return ErrSourceEnded
		}
	}
	if e.session != nil && !e.session.good(now) {
		return ErrSessionEnded
	}
	if e.user != nil {
		return e.checkUser(now)
	}
	account := e.account.live.Load()
	switch {
	case account == nil:
		return ErrAccountGone
	case e.key == nil && !account.accepts(e.clientID, now):
		return ErrCredentialsReplaced
	case e.key != nil && e.key.revoked.Load():
		return ErrKeyRevoked
	case !account.sameIdentity(e.accountWas) || e.keyChanged():
		return ErrInvalidToken
	}
	if err := e.checkToken(now); err != nil {
		return err
	}
	if e.key != nil && e.keyWas.Instance != "" && e.dir.rejectsKeys(name{e.keyWas.Organization, e.keyWas.Instance}) {
		return ErrKeyNotAccepted
	}
	return nil
}

// checkUser is check for tokens of users.
func (e *entry) checkUser(now time.Time) error {
	user, ok := e.user.load()
	switch {
	case !ok:
		return ErrUserGone
	case !user.sameIdentity(e.userWas):
		return ErrSessionEnded
	}
	return e.checkToken(now)
}

// checkToken checks the signing key and the times of a token.
func (e *entry) checkToken(now time.Time) error {
	switch {
	case !e.keys.Contains(e.kid):
		return ErrInvalidToken
	case !e.principal.ExpiresAt.IsZero() && !now.Before(e.principal.ExpiresAt):
		return ErrTokenExpired
	case e.notBefore.After(now.Add(clockSkew)):
		return ErrTokenTooEarly
	}
	return nil
}

// keyChanged reports whether the API key has changed since the verification, so that the
// principal must be created again.
func (e *entry) keyChanged() bool { return e.key != nil && e.key.live.Load() != e.keyWas }

// admit checks the audiences and returns the principal. It is the last check, because all
// surfaces share the cache entry.
func (e *entry) admit(audiences []string) (*Principal, error) {
	for _, requested := range audiences {
		if slices.Contains(e.audience, requested) {
			return e.principalAt(audiences)
		}
		if e.orgPrefix != "" && (requested == AnyOrganization || strings.HasPrefix(requested, e.orgPrefix)) {
			return e.principalAt(audiences)
		}
		if organization, instance, ok := ParseInstanceAudience(requested); ok && instance == anyInstance &&
			e.isForOrganization(organization) {
			return e.principalAt(audiences)
		}
	}
	return nil, ErrWrongAudience
}

// isForOrganization reports whether a token is for any data plane of an organization.
func (e *entry) isForOrganization(organization string) bool {
	return slices.ContainsFunc(e.audience, func(audience string) bool {
		of, _, ok := ParseInstanceAudience(audience)
		return ok && of == organization
	})
}

// principalAt returns the principal at a surface with these audiences. An organization's key does
// not work at instances that reject API keys, and running calls end when their instance
// starts to reject them. So the principal of such a key contains the instance.
func (e *entry) principalAt(audiences []string) (*Principal, error) {
	if e.orgPrefix == "" || e.key == nil {
		return &e.principal, nil
	}
	for _, audience := range audiences {
		if known, ok := e.planes.Load(audience); ok {
			return known.(*Principal).admitted()
		}
		if organization, instance, ok := ParseInstanceAudience(audience); ok && organization == e.keyWas.Organization {
			here := e.principal
			here.plane = name{organization, instance}
			known, _ := e.planes.LoadOrStore(audience, &here)
			return known.(*Principal).admitted()
		}
	}
	return &e.principal, nil
}

// verify checks the signature and the claims of a token, once per token.
func (v *Verifier) verify(ctx context.Context, token string, hash [sha256.Size]byte) (*entry, error) {
	if !canonical(token) {
		return nil, ErrInvalidToken
	}
	// Only ES256 is allowed, so neither "none" nor an HMAC with the public key as its
	// secret is accepted. Keys in the header (jwk, jku, x5c) are ignored.
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(signed.Signatures) != 1 {
		return nil, ErrInvalidToken
	}
	kid := signed.Signatures[0].Protected.KeyID
	public, err := v.issuer.keys.verifyKey(ctx, kid)
	if err != nil {
		return nil, err
	}
	payload, err := signed.Verify(public)
	if err != nil {
		return nil, ErrInvalidToken
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, ErrInvalidToken
	}
	e := &entry{
		dir: v.dir, audience: c.Audience, kid: kid, keys: v.issuer.keys, now: v.issuer.now,
		notBefore: time.Unix(c.NotBefore, 0),
	}
	switch {
	case strings.HasSuffix(c.Issuer, apiKeysSuffix):
		err = v.bindKey(e, &c, hash)
	case c.SessionID != "":
		err = v.bindSession(ctx, e, &c)
	default:
		err = v.bindAccount(e, &c)
	}
	if err == nil {
		err = v.bindSources(ctx, e, c.Sources)
	}
	if err != nil {
		return nil, err
	}
	e.principal.entry = e
	return e, nil
}

// canonical reports whether a token has its canonical encoding. Decoders skip line breaks
// and ignore unused bits, so otherwise one token could have many encodings and as many
// cache entries.
func canonical(token string) bool {
	rest, dots := token, 0
	for {
		part, after, more := strings.Cut(rest, ".")
		if strings.ContainsAny(part, "\r\n") {
			return false
		}
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
		if !more {
			return dots == 2
		}
		rest, dots = after, dots+1
	}
}

// bindAccount links an access token to its account. It compares the uid, because an
// account that was deleted and created again is another one.
func (v *Verifier) bindAccount(e *entry, c *claims) error {
	clientID, ok := strings.CutSuffix(c.Subject, clientsSuffix)
	if !ok || c.Expiry == 0 || c.Issuer != v.issuer.url {
		return ErrInvalidToken
	}
	if err := v.bindClient(e, clientID, c.UID); err != nil {
		return err
	}
	e.principal = v.principal(e.accountWas)
	e.principal.System = e.accountWas.System
	e.principal.TokenID = c.ID
	e.principal.ExpiresAt = time.Unix(c.Expiry, 0).UTC()
	if _, instance, ok := ParseInstanceAudience(first(c.Audience)); ok {
		e.principal.Instance = instance
	}
	return nil
}

// bindClient links a token to the account of a client id.
func (v *Verifier) bindClient(e *entry, clientID, uid string) error {
	e.account, e.clientID = v.dir.client(clientID), clientID
	if e.account == nil {
		return ErrAccountGone
	}
	e.accountWas = e.account.live.Load()
	if e.accountWas == nil || e.accountWas.UID != uid {
		return ErrAccountGone
	}
	return nil
}

// bindKey links an API key to its record and account. It does not compare the issuer's
// URL, because keys without expiry must survive a change of the URL; the record contains
// the hash of the token, which proves more.
func (v *Verifier) bindKey(e *entry, c *claims, hash [sha256.Size]byte) error {
	if err := v.bindKeyRecord(e, c.ID, c.UID); err != nil {
		return err
	}
	want := e.keyWas.Hash
	if subtle.ConstantTimeCompare([]byte(want), []byte(hex.EncodeToString(hash[:]))) != 1 {
		return ErrInvalidToken
	}
	e.principal = v.principal(e.accountWas)
	// A key is for one organization at most, so the key of a system administrator
	// administers only that organization.
	e.principal.Admin = e.accountWas.Admin || e.accountWas.System
	e.principal.TokenID, e.principal.KeyID, e.principal.KeyName = c.ID, c.ID, e.keyWas.Name
	e.principal.Instance = e.keyWas.Instance
	e.principal.Metadata = e.keyWas.Metadata
	e.principal.ExpiresAt = e.keyWas.ExpiresAt
	if c.Expiry != 0 {
		if exp := time.Unix(c.Expiry, 0).UTC(); e.principal.ExpiresAt.IsZero() || exp.Before(e.principal.ExpiresAt) {
			e.principal.ExpiresAt = exp
		}
	}
	if e.keyWas.Instance == "" {
		e.orgPrefix = OrganizationAudience(e.keyWas.Organization) + ":"
	}
	return nil
}

// bindKeyRecord links a token to the record of an API key and its account.
func (v *Verifier) bindKeyRecord(e *entry, id, uid string) error {
	account, key := v.dir.key(id)
	if key == nil {
		return ErrKeyUnknown
	}
	e.account, e.key, e.keyWas = account, key, key.live.Load()
	if e.keyWas == nil {
		return ErrKeyUnknown
	}
	if account == nil {
		return ErrAccountGone
	}
	e.accountWas = account.live.Load()
	if e.accountWas == nil || e.accountWas.UID != uid || e.accountWas.UID != e.keyWas.AccountUID {
		return ErrAccountGone
	}
	return nil
}

func (v *Verifier) principal(a *Account) Principal {
	return Principal{
		Name:           v.issuer.PrincipalName(a.Organization, a.Name),
		Organization:   a.Organization,
		ServiceAccount: a.Name,
		UID:            a.UID,
		Admin:          a.Admin,
	}
}

// hashText returns the SHA-256 of a text. It copies tokens of the usual length to the
// stack, because a conversion to bytes would allocate on every request (BenchmarkVerify).
func hashText(text string) [sha256.Size]byte {
	var buf [1024]byte
	if len(text) <= len(buf) {
		return sha256.Sum256(buf[:copy(buf[:], text)])
	}
	return sha256.Sum256([]byte(text))
}

// Cached returns the number of cached tokens, for metrics.
func (v *Verifier) Cached() int { return v.cache.len() }

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
