package signin

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// The clients there are. Both are public: they have no secret.
const (
	ClientConsole = "freshet-console"
	ClientCLI     = "freshet-cli"
)

// Refusals of what clients bring. None tells a wrong one from one that was used.
var (
	ErrInvalidGrant = errs.New(errs.Unauthenticated,
		"the code or refresh token is wrong, was used, or its time is up: sign in again")
	ErrWrongClient = errs.New(errs.Denied, "the client may not use this grant")
)

// maxDeviceGrant is how long a device stays signed in at most, however often it
// renews its tokens.
const maxDeviceGrant = 90 * 24 * time.Hour

// Grant is what a client has for somebody.
type Grant struct {
	ID      string
	Client  string
	Subject Subject
	Display string
	Refresh identity.Secret // shown once
	Nonce   string          // of the authorization request
	Begun   time.Time       // when the person proved who they are

	session identity.Session
}

// Ends is when the grant is over unless it is renewed before.
func (g *Grant) Ends() time.Time { return g.session.Ends }

// newGrant stores a grant. With a session it ends with that.
func (s *Service) newGrant(ctx context.Context, id, client string, of Subject, in *session, inID string,
	begun time.Time,
) (*Grant, error) {
	display, alive := s.Alive(of)
	if !alive {
		return nil, ErrInvalidGrant
	}
	if err := s.makeRoom(ctx, of.UID, grants); err != nil {
		return nil, err
	}
	secret := identity.GenerateSecret()
	record := grant{Subject: of, Client: client, Session: inID, Hash: hashOf(secret.Reveal()), Begun: begun}
	if in != nil {
		record.Ends = in.Ends
	} else {
		record.Ends = deviceEnd(begun, s.opts.DeviceLifetime)
	}
	if err := s.write(ctx, grants+id, record, 0); err != nil {
		return nil, err
	}
	return &Grant{
		ID: id, Client: client, Subject: of, Display: display, Begun: begun,
		Refresh: identity.NewSecret(id + "." + secret.Reveal()), session: record.identity(id),
	}, nil
}

func deviceEnd(begun time.Time, lifetime time.Duration) time.Time {
	end, last := time.Now().UTC().Add(lifetime), begun.Add(maxDeviceGrant)
	if end.After(last) {
		return last
	}
	return end
}

// Refresh exchanges a refresh token for the next one. One that was exchanged before
// has been stolen, from one side or the other, and the grant ends; unless that was a
// moment ago and nobody has used the next one: then the answer was lost on its way, and
// is given again.
func (s *Service) Refresh(ctx context.Context, token, client string) (*Grant, error) {
	id, secret, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken || !isID(id) {
		return nil, ErrInvalidGrant
	}
	for {
		g, err := s.refresh(ctx, id, secret, client)
		if !errors.Is(err, ErrChanged) {
			return g, err
		}
		// Somebody else was faster: with this token, or to end the grant.
	}
}

func (s *Service) refresh(ctx context.Context, id, secret, client string) (*Grant, error) {
	record, revision, ok, err := read[grant](ctx, s.opts.Store, grants+id)
	if err != nil {
		return nil, err
	}
	if !ok || record.Client != client || !time.Now().Before(record.Ends) {
		return nil, ErrInvalidGrant
	}
	again := record.Before != "" && same(record.Before, secret) && time.Since(record.Renewed) < s.opts.RefreshGrace
	if !again && !same(record.Hash, secret) {
		return nil, s.reused(ctx, id, record.Subject)
	}
	display, alive := s.Alive(record.Subject)
	if !alive {
		return nil, errors.Join(ErrInvalidGrant, s.drop(ctx, grants+id))
	}
	if record.Session != "" {
		if _, _, there, err := read[session](ctx, s.opts.Store, sessions+record.Session); err != nil {
			return nil, err
		} else if !there {
			return nil, errors.Join(ErrInvalidGrant, s.drop(ctx, grants+id))
		}
	}
	if !again {
		if record.Session == "" {
			record.Ends = deviceEnd(record.Begun, s.opts.DeviceLifetime)
		}
		record.Salt, record.Renewed = identity.GenerateSecret().Reveal(), time.Now().UTC()
		record.Before, record.Hash = record.Hash, hashOf(successor(secret, record.Salt))
		if err := s.write(ctx, grants+id, record, revision); err != nil {
			return nil, err
		}
	}
	return &Grant{
		ID: id, Client: client, Subject: record.Subject, Display: display, Begun: record.Begun,
		Refresh: identity.NewSecret(id + "." + successor(secret, record.Salt)), session: record.identity(id),
	}, nil
}

// successor is the secret of the refresh token that follows one. Who has only the one,
// or only what is stored, cannot tell it.
func successor(secret, salt string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("refresh token after\x00" + salt)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Reused is the refusal of a refresh token that was used before, and says whose.
type Reused struct{ Subject Subject }

// Error does not tell it from other refusals.
func (*Reused) Error() string { return ErrInvalidGrant.Error() }

// Unwrap makes it an ErrInvalidGrant.
func (*Reused) Unwrap() error { return ErrInvalidGrant }

func (s *Service) reused(ctx context.Context, id string, of Subject) error {
	if err := s.drop(ctx, grants+id); err != nil {
		return err
	}
	return &Reused{of}
}

// Revoke ends what a refresh token belongs to: of a browser's client the whole
// session, so that nobody comes back without signing in. What is not good is ended
// already.
func (s *Service) Revoke(ctx context.Context, token, client string) (Subject, error) {
	id, secret, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken || !isID(id) {
		return Subject{}, nil
	}
	record, _, ok, err := read[grant](ctx, s.opts.Store, grants+id)
	if err != nil || !ok || record.Client != client || !same(record.Hash, secret) {
		return Subject{}, err
	}
	return record.Subject, s.EndGrant(ctx, id)
}

// EndGrant ends a grant, and of a browser's client the session.
func (s *Service) EndGrant(ctx context.Context, id string) error {
	record, _, ok, err := read[grant](ctx, s.opts.Store, grants+id)
	if err != nil {
		return err
	}
	if ok && record.Session != "" {
		return s.EndSession(ctx, record.Session)
	}
	return s.drop(ctx, grants+id)
}

// Scopes are what a person's tokens say about them; decisions are made from
// bindings.
func (s *Service) scopes(of Subject) []string {
	if account, ok := s.opts.Directory.Account(of.Organization, of.Account); of.Account != "" && ok {
		return account.Scopes()
	}
	return []string{"access"}
}

// Tokens makes the access token of a grant. It is good for the resource API and for
// the data planes of the organization.
func (s *Service) Tokens(g *Grant) (access identity.Secret, scope string, expires time.Time, err error) {
	scopes := s.scopes(g.Subject)
	access, expires, err = s.opts.Issuer.SessionToken(&g.session, scopes, s.opts.TokenLifetime,
		s.opts.Audience, identity.OrganizationAudience(g.Subject.Organization))
	return access, strings.Join(scopes, " "), expires, err
}

// IDToken tells the client of a grant who has signed in.
func (s *Service) IDToken(g *Grant) (identity.Secret, error) {
	return s.opts.Issuer.IDToken(identity.IDToken{
		Subject: g.session.Subject(), Client: g.Client, Nonce: g.Nonce, Name: g.Display, Email: g.Subject.Email,
		Principal: s.opts.Issuer.SessionPrincipal(&g.session), Authenticated: g.Begun,
	}, s.opts.TokenLifetime)
}

// Principal is what somebody is called in audit records.
func (s *Service) Principal(of Subject) string {
	return s.opts.Issuer.SessionPrincipal(&identity.Session{
		Organization: of.Organization, User: of.User,
		Account: of.Account,
	})
}
