package signin

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Known clients. Both are public clients without a secret.
const (
	ClientConsole = "freshet-console"
	ClientCLI     = "freshet-cli"
)

// Errors for codes and refresh tokens. They do not distinguish a wrong one from a used one.
var (
	ErrInvalidGrant = errs.New(errs.Unauthenticated,
		"code or refresh token is wrong, was used, or has expired; sign in again")
	ErrWrongClient = errs.New(errs.Denied, "client may not use this grant")
)

// maxDeviceGrant is the maximum lifetime of a device's grant, even if the device renews its
// tokens.
const maxDeviceGrant = 90 * 24 * time.Hour

// Grant is the permission of a client to get tokens of a user.
type Grant struct {
	ID      string
	Client  string
	Subject Subject
	Display string
	Refresh identity.Secret // shown once
	Nonce   string          // of the authorization request
	Begun   time.Time       // when the user authenticated

	session identity.Session
}

// Ends returns when the grant expires if the client does not renew it.
func (g *Grant) Ends() time.Time { return g.session.Ends }

// Grants manages grants with their refresh tokens, and issues the tokens of grants.
type Grants struct {
	records  *indexedStore
	subjects *Subjects
	sessions *Sessions

	directory      *identity.Directory
	issuer         *identity.Issuer
	audience       string
	tokenLifetime  time.Duration
	deviceLifetime time.Duration
	refreshGrace   time.Duration
}

// newGrant stores a grant. The grant of a session expires with the session.
func (s *Grants) newGrant(ctx context.Context, id, client string, of Subject, in *session, inID string,
	begun time.Time,
) (*Grant, error) {
	display, alive := s.subjects.Alive(of)
	if !alive {
		return nil, ErrInvalidGrant
	}
	if err := s.sessions.endOldest(ctx, of.UID, grantsPrefix); err != nil {
		return nil, err
	}
	family := identity.GenerateSecret().Reveal()
	secret := withChecksum(family, random(secretBytes))
	record := grant{
		Subject: of, Client: client, Session: inID, Hash: hashOf(secret), Begun: begun, Family: family,
	}
	if in != nil {
		record.Ends = in.Ends
	} else {
		record.Ends = deviceEnd(begun, s.deviceLifetime)
	}
	if err := s.records.put(ctx, grantsPrefix+id, record, 0); err != nil {
		return nil, err
	}
	return &Grant{
		ID: id, Client: client, Subject: of, Display: display, Begun: begun,
		Refresh: identity.NewSecret(id + "." + secret), session: record.identity(id),
	}, nil
}

func deviceEnd(begun time.Time, lifetime time.Duration) time.Time {
	end, last := time.Now().UTC().Add(lifetime), begun.Add(maxDeviceGrant)
	if end.After(last) {
		return last
	}
	return end
}

// Refresh exchanges a refresh token for the next one. A token that was exchanged before is
// known to two clients, so it was stolen and Refresh ends the grant. The exception is a
// token that was exchanged less than RefreshGrace ago and whose successor was not used:
// then the response was probably lost, and Refresh returns the same successor again. A secret
// that was never issued changes nothing, because the id of a grant is not a secret.
func (s *Grants) Refresh(ctx context.Context, token, client string) (*Grant, error) {
	id, secret, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken || !isID(id) {
		return nil, ErrInvalidGrant
	}
	for {
		g, err := s.refresh(ctx, id, secret, client)
		if !errors.Is(err, ErrChanged) {
			return g, err
		}
		// Another request changed the grant: it used the token, or ended the grant.
	}
}

func (s *Grants) refresh(ctx context.Context, id, secret, client string) (*Grant, error) {
	record, revision, ok, err := read[grant](ctx, s.records, grantsPrefix+id)
	if err != nil {
		return nil, err
	}
	if !ok || record.Client != client || !time.Now().Before(record.Ends) {
		return nil, ErrInvalidGrant
	}
	again := record.Before != "" && matchesHash(record.Before, secret) &&
		time.Since(record.Renewed) < s.refreshGrace
	if !again && !matchesHash(record.Hash, secret) {
		if !record.issued(secret) {
			return nil, ErrInvalidGrant
		}
		return nil, s.endReused(ctx, id, record.Subject)
	}
	display, alive := s.subjects.Alive(record.Subject)
	if !alive {
		return nil, errors.Join(ErrInvalidGrant, s.records.delete(ctx, grantsPrefix+id))
	}
	if record.Session != "" {
		if _, _, exists, err := read[session](ctx, s.records, sessionsPrefix+record.Session); err != nil {
			return nil, err
		} else if !exists {
			return nil, errors.Join(ErrInvalidGrant, s.records.delete(ctx, grantsPrefix+id))
		}
	}
	if !again {
		if record.Session == "" {
			record.Ends = deviceEnd(record.Begun, s.deviceLifetime)
		}
		if record.Family == "" {
			record.Family = identity.GenerateSecret().Reveal()
		}
		record.Salt, record.Renewed = identity.GenerateSecret().Reveal(), time.Now().UTC()
		record.Before, record.Hash = record.Hash, hashOf(record.successor(secret))
		if err := s.records.put(ctx, grantsPrefix+id, record, revision); err != nil {
			return nil, err
		}
	}
	return &Grant{
		ID: id, Client: client, Subject: record.Subject, Display: display, Begun: record.Begun,
		Refresh: identity.NewSecret(id + "." + record.successor(secret)), session: record.identity(id),
	}, nil
}

// successor returns the secret of the next refresh token. It cannot be computed from the
// previous secret alone or from the stored record alone.
func (g *grant) successor(secret string) string {
	next := sum(secret, "refresh token after\x00"+g.Salt)
	if g.Family == "" { // renewed by an earlier version
		return base64.RawURLEncoding.EncodeToString(next)
	}
	return withChecksum(g.Family, next)
}

// Sizes of the parts of a refresh token's secret, in bytes.
const (
	secretBytes   = 32
	checksumBytes = 16
)

// withChecksum returns the secret of a refresh token: a random part, and its checksum with the
// key of the grant.
func withChecksum(family string, random []byte) string {
	checksum := sum(family, "refresh token\x00"+string(random))
	return base64.RawURLEncoding.EncodeToString(append(random, checksum[:checksumBytes]...))
}

// issued reports whether secret is from a refresh token of the grant, of any age. Of the tokens
// without a checksum, which earlier versions issued, it recognizes only the previous one.
func (g *grant) issued(secret string) bool {
	if g.Before != "" && matchesHash(g.Before, secret) {
		return true
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	if g.Family == "" || err != nil || len(raw) != secretBytes+checksumBytes {
		return false
	}
	want := withChecksum(g.Family, raw[:secretBytes:secretBytes])
	return subtle.ConstantTimeCompare([]byte(want), []byte(secret)) == 1
}

// sum returns the HMAC-SHA-256 of a text.
func sum(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte(text)) // never fails
	return mac.Sum(nil)
}

// ReusedTokenError is the error for a refresh token that was used before, with its subject for the
// audit log.
type ReusedTokenError struct{ Subject Subject }

// Error returns the text of ErrInvalidGrant, so that the client cannot distinguish it.
func (*ReusedTokenError) Error() string { return ErrInvalidGrant.Error() }

// Unwrap makes the error an ErrInvalidGrant.
func (*ReusedTokenError) Unwrap() error { return ErrInvalidGrant }

func (s *Grants) endReused(ctx context.Context, id string, of Subject) error {
	if err := s.records.delete(ctx, grantsPrefix+id); err != nil {
		return err
	}
	return &ReusedTokenError{of}
}

// Revoke ends the grant of a refresh token. For the grant of a browser it ends the whole
// session, so that the browser must sign in again. It ignores a token that is not valid.
func (s *Grants) Revoke(ctx context.Context, token, client string) (Subject, error) {
	id, secret, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken || !isID(id) {
		return Subject{}, nil
	}
	record, _, ok, err := read[grant](ctx, s.records, grantsPrefix+id)
	if err != nil || !ok || record.Client != client || !matchesHash(record.Hash, secret) {
		return Subject{}, err
	}
	return record.Subject, s.EndGrant(ctx, id)
}

// EndGrant ends a grant, and for the grant of a browser also the session.
func (s *Grants) EndGrant(ctx context.Context, id string) error {
	record, _, ok, err := read[grant](ctx, s.records, grantsPrefix+id)
	if err != nil {
		return err
	}
	if ok && record.Session != "" {
		return s.sessions.EndSession(ctx, record.Session)
	}
	return s.records.delete(ctx, grantsPrefix+id)
}

// scopes returns the scopes in the tokens of a subject. They are information for clients;
// package access decides by role bindings.
func (s *Grants) scopes(of Subject) []string {
	if account, ok := s.directory.Account(of.Organization, of.Account); of.Account != "" && ok {
		return account.Scopes()
	}
	return []string{"access"}
}

// Tokens issues the access token of a grant. It is for the resource API and for all data
// planes of the organization.
func (s *Grants) Tokens(g *Grant) (access identity.Secret, scope string, expires time.Time, err error) {
	scopes := s.scopes(g.Subject)
	access, expires, err = s.issuer.SessionToken(&g.session, scopes, s.tokenLifetime,
		s.audience, identity.OrganizationAudience(g.Subject.Organization))
	return access, strings.Join(scopes, " "), expires, err
}

// IDToken issues the OpenID Connect ID token of a grant.
func (s *Grants) IDToken(g *Grant) (identity.Secret, error) {
	return s.issuer.IDToken(identity.IDToken{
		Subject: g.session.Subject(), Client: g.Client, Nonce: g.Nonce, Name: g.Display, Email: g.Subject.Email,
		Principal: s.issuer.SessionPrincipal(&g.session), Authenticated: g.Begun,
	}, s.tokenLifetime)
}

// LoadSession implements identity.SessionLoader.
func (s *Grants) LoadSession(ctx context.Context, id string) (identity.Session, bool, error) {
	if len(id) > maxToken || strings.Contains(id, "/") {
		return identity.Session{}, false, nil
	}
	g, _, ok, err := read[grant](ctx, s.records, grantsPrefix+id)
	if err != nil || !ok {
		return identity.Session{}, false, err
	}
	return g.identity(id), true, nil
}
