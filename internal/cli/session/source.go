package session

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"freshet/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// source hands out the access tokens of a session.
type source struct {
	path string

	// mu guards what follows. It is held while the session is renewed, for which all
	// others wait anyway.
	mu      sync.Mutex
	token   client.Token
	renewAt time.Time
	refused string // an access token that the server does not take
}

// Source is the TokenSource of the session in a file. The access token is kept there
// as well, so that all processes use the same one while it is good.
func Source(path string) client.TokenSource { return &source{path: path} }

// Token implements client.TokenSource.
func (s *source) Token(ctx context.Context) (client.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.Value != "" && time.Now().Before(s.renewAt) {
		return s.token, nil
	}
	kept, err := Read(s.path)
	if err != nil {
		return client.Token{}, err
	}
	if !s.good(kept) {
		if kept, err = s.renew(ctx); err != nil {
			return client.Token{}, err
		}
	}
	s.token, s.renewAt = client.Token{Value: kept.AccessToken, Expiry: kept.Expiry}, kept.RenewAt
	return s.token, nil
}

// Invalidate implements client.Invalidator.
func (s *source) Invalidate(refused client.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = refused.Value
	if s.token.Value == refused.Value {
		s.token = client.Token{}
	}
}

func (s *source) good(kept *Session) bool {
	return kept.AccessToken != "" && kept.AccessToken != s.refused && time.Now().Before(kept.RenewAt)
}

// renew has the session renewed, unless another process has done it meanwhile.
func (s *source) renew(ctx context.Context) (kept *Session, err error) {
	unlock, err := lock(ctx, s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if kept, err = Read(s.path); err != nil || s.good(kept) {
		return kept, err
	}
	// Whoever interrupts the command must not lose the refresh token that is on its
	// way: this ends by its own timeout.
	before := *kept
	err = kept.ask(context.WithoutCancel(ctx),
		url.Values{"grant_type": {grantRefresh}, "refresh_token": {kept.RefreshToken}})
	var refusal *client.Error
	switch {
	case err == nil:
		return kept, kept.write(s.path)
	case errors.As(err, &refusal) && refusal.Reason == "invalid_grant":
		return nil, hint.Add(errs.Newf(errs.Unauthenticated, "the session of %s at %s has ended", before.Principal,
			before.Server), signInAgain)
	case errors.Is(err, client.ErrUnavailable) && before.AccessToken != s.refused && time.Now().Before(before.Expiry):
		return &before, nil // good for some seconds more
	}
	return nil, err
}
