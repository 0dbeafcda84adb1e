package session

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// source is the token source of a session file.
type source struct {
	path string

	// mu protects the fields below. It is held while the session is renewed, because all
	// callers need the result.
	mu       sync.Mutex
	token    client.Token
	renewAt  time.Time
	rejected string // an access token that the server has rejected
}

// Source returns the token source of a session file. The file also stores the access token,
// so that all processes use the same one until it must be renewed.
func Source(path string) client.TokenSource { return &source{path: path} }

// Token implements client.TokenSource.
func (s *source) Token(ctx context.Context) (client.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.Value != "" && time.Now().Before(s.renewAt) {
		return s.token, nil
	}
	stored, err := Read(s.path)
	if err != nil {
		return client.Token{}, err
	}
	if !s.usable(stored) {
		if stored, err = s.renew(ctx); err != nil {
			return client.Token{}, err
		}
	}
	s.token, s.renewAt = client.Token{Value: stored.AccessToken, Expiry: stored.Expiry}, stored.RenewAt
	return s.token, nil
}

// Invalidate implements client.Invalidator.
func (s *source) Invalidate(refused client.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected = refused.Value
	if s.token.Value == refused.Value {
		s.token = client.Token{}
	}
}

func (s *source) usable(stored *Session) bool {
	return stored.AccessToken != "" && stored.AccessToken != s.rejected && time.Now().Before(stored.RenewAt)
}

// renew renews the session, unless another process has renewed it in the meantime.
func (s *source) renew(ctx context.Context) (stored *Session, err error) {
	unlock, err := lock(ctx, s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if stored, err = Read(s.path); err != nil || s.usable(stored) {
		return stored, err
	}
	// An interrupt must not lose the new refresh token, so the request is not canceled. It
	// has its own timeout.
	before := *stored
	err = stored.requestTokens(context.WithoutCancel(ctx),
		url.Values{"grant_type": {grantRefresh}, "refresh_token": {stored.RefreshToken}})
	var refusal *client.Error
	switch {
	case err == nil:
		return stored, stored.write(s.path)
	case errors.As(err, &refusal) && refusal.Reason == "invalid_grant":
		return nil, hint.Add(errs.Newf(errs.Unauthenticated, "session of %s on %s has ended", before.Principal,
			before.Server), signInAgain)
	case errors.Is(err, client.ErrUnavailable) && before.AccessToken != s.rejected && time.Now().Before(before.Expiry):
		return &before, nil // the old access token is still valid for some seconds
	}
	return nil, err
}
