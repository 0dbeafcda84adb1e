package signin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"time"

	"freshet/internal/identity"
)

// codeLifetime is how long a client may take to use an authorization code.
const codeLifetime = time.Minute

// CodeRequest contains the parameters of an authorization request.
type CodeRequest struct {
	Client    string
	Redirect  string
	Challenge string // of RFC 7636, S256
	Nonce     string
}

// Codes issues authorization codes and exchanges them for grants.
type Codes struct {
	records *indexedStore
	grants  *Grants
}

// NewCode issues an authorization code for a session.
func (s *Codes) NewCode(ctx context.Context, in *Session, r CodeRequest) (identity.Secret, error) {
	token := identity.GenerateSecret()
	record := code{
		Subject: in.Subject, Client: r.Client, Session: in.ID, Redirect: r.Redirect, Challenge: r.Challenge,
		Nonce: r.Nonce,
		Begun: in.Begun, Ends: time.Now().UTC().Add(codeLifetime),
	}
	return token, s.records.put(ctx, codesPrefix+hashOf(token.Reveal()), record, 0)
}

// UseCode exchanges an authorization code for a grant. A code that is used twice was
// stolen, so the second use ends the grant of the first one (RFC 6749 §4.1.2).
func (s *Codes) UseCode(ctx context.Context, token, client, redirect, verifier string) (*Grant, error) {
	if token == "" || len(token) > maxToken {
		return nil, ErrInvalidGrant
	}
	key := codesPrefix + hashOf(token)
	record, revision, ok, err := read[code](ctx, s.records, key)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok || !time.Now().Before(record.Ends):
		return nil, ErrInvalidGrant
	case record.Grant != "":
		return nil, errors.Join(ErrInvalidGrant, s.records.delete(ctx, key),
			s.records.delete(ctx, grantsPrefix+record.Grant))
	case record.Client != client || record.Redirect != redirect || !matchesChallenge(verifier, record.Challenge):
		// The caller is not the client that requested the code, so the code is deleted.
		return nil, errors.Join(ErrInvalidGrant, s.records.delete(ctx, key))
	}
	in, _, exists, err := read[session](ctx, s.records, sessionsPrefix+record.Session)
	if err != nil {
		return nil, err
	}
	if !exists || !time.Now().Before(in.Ends) {
		return nil, ErrInvalidGrant
	}
	record.Grant = newID()
	err = s.records.put(ctx, key, record, revision)
	if errors.Is(err, ErrChanged) {
		return s.UseCode(ctx, token, client, redirect, verifier) // another request used the code
	}
	if err != nil {
		return nil, err
	}
	g, err := s.grants.newGrant(ctx, record.Grant, client, record.Subject, &in, record.Session, record.Begun)
	if err != nil {
		return nil, err
	}
	if err := s.checkUsedOnce(ctx, key, g); err != nil {
		return nil, err
	}
	g.Nonce = record.Nonce
	return g, nil
}

// checkUsedOnce ends a grant whose code was used again while the grant was being created.
// The second use deleted the code.
func (s *Codes) checkUsedOnce(ctx context.Context, key string, g *Grant) error {
	record, _, exists, err := read[code](ctx, s.records, key)
	if err != nil {
		return err
	}
	if !exists || record.Grant != g.ID {
		return errors.Join(ErrInvalidGrant, s.records.delete(ctx, grantsPrefix+g.ID))
	}
	return nil
}

// matchesChallenge reports whether a verifier matches a challenge (RFC 7636 §4.6).
func matchesChallenge(verifier, challenge string) bool {
	if !isVerifier(verifier) {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// isVerifier reports whether text has the form of a code verifier (RFC 7636 §4.1).
func isVerifier(text string) bool {
	if len(text) < 43 || len(text) > 128 {
		return false
	}
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_', r == '~':
		default:
			return false
		}
	}
	return true
}

// IsChallenge reports whether text has the form of a code challenge: a SHA-256 in base64url.
func IsChallenge(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}
