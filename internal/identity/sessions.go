package identity

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"freshet/internal/base/revision"
)

// Session is a sign-in for which access tokens are issued. The tokens expire with it. It
// belongs to a user, or, if Account is set, to a service account whose owner signed in
// with a one-time link.
type Session struct {
	ID           string
	Organization string
	User         string
	Account      string
	UID          string // of the user or the account
	Email        string // of the user, when the session began
	ClientID     string // of the account, when the session began
	Ends         time.Time
}

// sessionRecord is the record that cached tokens point to, see accountRecord.
type sessionRecord struct {
	live atomic.Pointer[Session] // nil after the end; written under Directory.mu
}

// SessionLoader loads a session that another replica has started.
type SessionLoader interface {
	LoadSession(ctx context.Context, id string) (Session, bool, error)
}

// SetSessionLoader sets the loader for sessions that the directory does not contain. It must be
// called before the directory is used.
func (d *Directory) SetSessionLoader(loader SessionLoader) { d.loader = loader }

// PutSession adds a session. A session that has ended does not come back.
func (d *Directory) PutSession(s Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.endedSessions.Cover(s.ID, 1) {
		return
	}
	rec := d.sessions[s.ID]
	if rec == nil {
		rec = &sessionRecord{}
		d.sessions[s.ID] = rec
	}
	if old := rec.live.Load(); old == nil || *old != s {
		rec.live.Store(&s)
	}
}

// EndSession ends a session; all its tokens stop working.
func (d *Directory) EndSession(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endedSessions.Add(id, revision.Forever)
	if rec := d.sessions[id]; rec != nil {
		rec.live.Store(nil)
		delete(d.sessions, id)
	}
}

// session returns a session from the directory, or from the loader.
func (d *Directory) session(ctx context.Context, id string) (*sessionRecord, error) {
	d.mu.RLock()
	rec, ended := d.sessions[id], d.endedSessions.Cover(id, 1)
	d.mu.RUnlock()
	if rec != nil || ended || d.loader == nil {
		return rec, nil
	}
	s, ok, err := d.loader.LoadSession(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	d.PutSession(s)
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.sessions[id], nil
}

func (r *sessionRecord) good(now time.Time) bool {
	s := r.live.Load()
	return s != nil && now.Before(s.Ends)
}

// Suffixes of the subjects of session tokens. Subjects of accounts that authenticate with
// a client secret end in clientsSuffix.
const (
	usersSuffix    = "@users"
	accountsSuffix = "@accounts"
)

// Subject returns the sub claim of the session's tokens.
func (s *Session) Subject() string {
	if s.Account != "" {
		return s.UID + accountsSuffix
	}
	return s.UID + usersSuffix
}

// SessionToken issues an access token of a session for the audiences.
func (i *Issuer) SessionToken(s *Session, scopes []string, lifetime time.Duration,
	audiences ...string,
) (Secret, time.Time, error) {
	now := i.now().Truncate(time.Second)
	expires := now.Add(lifetime)
	if s.Ends.Before(expires) {
		expires = s.Ends.Truncate(time.Second)
	}
	token, err := i.keys.sign(claims{
		Issuer:    i.url,
		Subject:   s.Subject(),
		Audience:  audiences,
		IssuedAt:  now.Unix(),
		Expiry:    expires.Unix(),
		ID:        randomText(16),
		Username:  i.SessionPrincipal(s),
		Scopes:    scopes,
		Scope:     strings.Join(scopes, " "),
		UID:       s.UID,
		SessionID: s.ID,
	})
	return token, expires, err
}

// SessionPrincipal returns the principal name of the session's user or account.
func (i *Issuer) SessionPrincipal(s *Session) string {
	if s.Account != "" {
		return i.PrincipalName(s.Organization, s.Account)
	}
	return i.UserPrincipalName(s.Organization, s.User)
}

// IDToken describes an OpenID Connect ID token: it informs a client about the user that
// signed in. It is not an access token: it contains no session, and its audience is the
// client.
type IDToken struct {
	Subject       string
	Client        string
	Nonce         string
	Name          string
	Email         string
	Principal     string
	Authenticated time.Time
}

// IDToken issues an ID token with a lifetime.
func (i *Issuer) IDToken(t IDToken, lifetime time.Duration) (Secret, error) {
	now := i.now()
	return i.keys.sign(struct {
		Issuer        string `json:"iss"`
		Subject       string `json:"sub"`
		Audience      string `json:"aud"`
		IssuedAt      int64  `json:"iat"`
		Expiry        int64  `json:"exp"`
		Authenticated int64  `json:"auth_time"`
		Nonce         string `json:"nonce,omitempty"`
		Name          string `json:"name,omitempty"`
		Email         string `json:"email,omitempty"`
		Principal     string `json:"https://vendor.io/username"`
	}{
		i.url, t.Subject, t.Client, now.Unix(), now.Add(lifetime).Unix(), t.Authenticated.Unix(), t.Nonce, t.Name,
		t.Email, t.Principal,
	})
}

// bindSession links a token to its session and to the session's user or account. A user
// that was deleted and created again, or has another e-mail address, is another user.
func (v *Verifier) bindSession(ctx context.Context, e *entry, c *claims) error {
	if c.Expiry == 0 || c.Issuer != v.issuer.url {
		return ErrInvalidToken
	}
	if err := v.bindSessionRecord(ctx, e, c.SessionID, c.Subject, c.UID); err != nil {
		return err
	}
	e.principal.SessionID, e.principal.TokenID = c.SessionID, c.ID
	e.principal.ExpiresAt = time.Unix(c.Expiry, 0).UTC()
	return nil
}

// bindSessionRecord links a token to a session and to the session's user or account.
func (v *Verifier) bindSessionRecord(ctx context.Context, e *entry, id, subject, uid string) error {
	session, err := v.dir.session(ctx, id)
	if err != nil {
		return err
	}
	if session == nil {
		return ErrSessionEnded
	}
	was := session.live.Load()
	if was == nil || was.Subject() != subject || was.UID != uid {
		return ErrSessionEnded
	}
	e.session = session
	if was.Account != "" {
		return v.bindSessionAccount(e, was)
	}
	return v.bindUser(e, was)
}

// bindUser links a token to its user. The token is accepted at every data plane of the
// organization; role bindings decide what the user may do there.
func (v *Verifier) bindUser(e *entry, s *Session) error {
	e.user = v.dir.user(s.Organization, s.User)
	user, ok := e.user.load()
	if !ok || user.UID != s.UID {
		return ErrUserGone
	}
	if user.Barred || !SameEmail(user.Email, s.Email) {
		return ErrSessionEnded
	}
	e.userWas = user
	e.principal = Principal{
		Name:         v.issuer.UserPrincipalName(user.Organization, user.Name),
		Organization: user.Organization, User: user.Name, UID: user.UID,
	}
	e.orgPrefix = OrganizationAudience(user.Organization) + ":"
	return nil
}

// bindSessionAccount links a token to its account. The token expires with the credentials
// that the account had when the session started.
func (v *Verifier) bindSessionAccount(e *entry, s *Session) error {
	e.account, e.clientID = v.dir.account(s.Organization, s.Account), s.ClientID
	account, ok := e.account.load()
	if !ok || account.UID != s.UID {
		return ErrAccountGone
	}
	e.accountWas = account
	e.principal = v.principal(account)
	e.principal.System = account.System
	e.orgPrefix = OrganizationAudience(account.Organization) + ":"
	if account.System {
		e.orgPrefix = audiencePrefix
	}
	return nil
}
