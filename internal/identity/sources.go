package identity

import (
	"context"
	"slices"
	"time"

	"freshet/internal/base/errs"
)

// source is a credential with which a token was requested for an account by a caller that does
// not have the account's secret (DelegatedToken). The token ends with the credential. If that
// credential is such a token itself, its sources are sources of the new token, too.
type source struct {
	Key        string `json:"key,omitempty"`    // id of an API key
	Session    string `json:"sid,omitempty"`    // id of a session
	Subject    string `json:"sub,omitempty"`    // of the session
	Client     string `json:"client,omitempty"` // client id of an account's credentials
	UID        string `json:"uid"`              // of the account or user
	SigningKey string `json:"kid"`              // with which the credential was signed
}

// maxSources bounds the sources of a token. Tokens that one account requests for itself again and
// again have one source.
const maxSources = 8

// source returns the token as a source of other tokens.
func (e *entry) source() source {
	s := source{UID: e.principal.UID, SigningKey: e.kid}
	switch {
	case e.key != nil:
		s.Key = e.principal.KeyID
	case e.session != nil:
		s.Session = e.principal.SessionID
		s.Subject = (&Session{UID: e.principal.UID, Account: e.principal.ServiceAccount}).Subject()
	default:
		s.Client = e.clientID
	}
	return s
}

// ends returns when tokens that are requested with the token e expire at the latest: with e and
// with its sources. It returns the zero time for credentials that do not expire.
func (e *entry) ends() time.Time {
	ends := e.ownEnd()
	for _, s := range e.sources {
		ends = earlier(ends, s.ownEnd())
	}
	return ends
}

// ownEnd is ends without the sources. The end of a token of a session is that of the session,
// because the next token of the session could request the same tokens again.
func (e *entry) ownEnd() time.Time {
	ends := e.principal.ExpiresAt
	if e.session != nil {
		if s := e.session.live.Load(); s != nil {
			ends = s.Ends
		}
	}
	if account, ok := e.account.load(); ok && e.key == nil && e.clientID == account.Replaced.ID {
		ends = earlier(ends, account.Replaced.Ends)
	}
	return ends
}

// earlier returns the earlier of two times; the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// DelegatedToken issues a token for an account to a caller that may act as the account. The
// token ends with the caller's credential: with its session, its API key, the credentials or the
// existence of its account, and with its signing key. A caller without a credential (the
// operator, and the server itself) gets the token that AccessToken issues.
func (i *Issuer) DelegatedToken(by *Principal, account *Account, lifetime time.Duration, audiences ...string,
) (Secret, time.Time, error) {
	now := i.now().Truncate(time.Second)
	expires := i.DelegatedExpiry(by, account, lifetime)
	var sources []source
	if by != nil && by.entry != nil {
		if !by.Live() || !expires.After(now) {
			return Secret{}, time.Time{}, ErrSourceEnded
		}
		sources = slices.Clone(by.entry.sourcesAre)
		if own := by.entry.source(); !slices.Contains(sources, own) {
			sources = append(sources, own)
		}
		if len(sources) > maxSources {
			return Secret{}, time.Time{}, ErrManySources
		}
	}
	return i.accessToken(account, now, expires, sources, audiences)
}

// DelegatedExpiry returns when a token of DelegatedToken expires.
func (i *Issuer) DelegatedExpiry(by *Principal, account *Account, lifetime time.Duration) time.Time {
	expires := tokenExpiry(account, lifetime, i.now().Truncate(time.Second))
	if by == nil || by.entry == nil {
		return expires
	}
	if ends := by.entry.ends(); !ends.IsZero() && ends.Before(expires) {
		return ends.Truncate(time.Second)
	}
	return expires
}

// bindSources links a token to the credentials with which it was requested.
func (v *Verifier) bindSources(ctx context.Context, e *entry, sources []source) error {
	if len(sources) > maxSources {
		return ErrInvalidToken
	}
	for _, s := range sources {
		bound := &entry{dir: v.dir, kid: s.SigningKey, keys: v.issuer.keys}
		var err error
		switch {
		case s.Key != "":
			if err = v.bindKeyRecord(bound, s.Key, s.UID); err == nil {
				bound.principal.ExpiresAt = bound.keyWas.ExpiresAt
			}
		case s.Session != "":
			err = v.bindSessionRecord(ctx, bound, s.Session, s.Subject, s.UID)
		default:
			err = v.bindClient(bound, s.Client, s.UID)
		}
		if err != nil {
			return sourceError(err)
		}
		e.sources = append(e.sources, bound)
	}
	e.sourcesAre = sources
	return nil
}

// sourceError returns ErrSourceEnded, or err if the server could not check the source.
func sourceError(err error) error {
	if errs.KindOf(err) == errs.Unauthenticated {
		return ErrSourceEnded
	}
	return err
}
