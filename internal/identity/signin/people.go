package signin

import (
	"context"
	"errors"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Methods of authentication, in records and metrics.
const (
	MethodPassword   = "password"
	MethodPasskey    = "passkey"
	MethodInvitation = "invitation"
	MethodLink       = "link"
	MethodProvider   = "openid"
)

// Lifetimes of links.
const (
	DefaultInvitation = 7 * 24 * time.Hour
	MaxInvitation     = 30 * 24 * time.Hour
	AdminLinkLifetime = 15 * time.Minute
)

// maxToken bounds the size of tokens from clients, in bytes.
const maxToken = 256

// Errors of authentication. They do not reveal which users exist.
var (
	ErrWrongPassword = errs.New(errs.Unauthenticated, "organization, name or password is wrong")
	ErrLinkUsed      = errs.New(errs.Unauthenticated,
		"link is not valid any more: it was used, replaced by a newer one, or has expired")
	ErrUserMissing = errs.New(errs.NotFound, "user does not exist")
)

// subjectOf returns a user as the subject of records.
func subjectOf(u *identity.User) Subject {
	return Subject{Organization: u.Organization, User: u.Name, UID: u.UID, Email: u.Email}
}

// find returns the user of an organization with a name, or with an e-mail address that only
// one user of the organization has.
func (s *Service) find(organization, name string) (Subject, bool) {
	if user, ok := s.opts.Directory.User(organization, name); ok {
		return subjectOf(user), true
	}
	var found []*identity.User
	for _, user := range s.opts.Directory.UsersByEmail(name) {
		if user.Organization == organization && !user.Barred {
			found = append(found, user)
		}
	}
	if len(found) != 1 {
		return Subject{}, false
	}
	return subjectOf(found[0]), true
}

// Authenticate returns the user with a password. For an unknown user, or one without a
// password, it does the same work as for a wrong password, so that the response time does
// not reveal which users exist.
func (s *Service) Authenticate(ctx context.Context, organization, name, password string) (Subject, error) {
	of, known := s.find(organization, name)
	stored := ""
	key := peoplePrefix + of.UID
	if !known {
		key = peoplePrefix + "none" // for the same number of calls of the store
	}
	p, _, ok, err := read[person](ctx, s.opts.Store, key)
	if err != nil {
		return Subject{}, err
	}
	if ok && known && identity.SameEmail(p.Subject.Email, of.Email) {
		stored = p.Password
	}
	right, err := s.hasher.check(ctx, stored, password)
	if err != nil {
		return Subject{}, err
	}
	if _, alive := s.Alive(of); !right || !alive {
		return of, ErrWrongPassword
	}
	return of, nil
}

// UsersByVerifiedEmail returns the users with an e-mail address that the OpenID provider has verified.
func (s *Service) UsersByVerifiedEmail(email string) []Subject {
	if !s.trusts(email) {
		return nil
	}
	var list []Subject
	for _, user := range s.opts.Directory.UsersByEmail(email) {
		if of := subjectOf(user); !user.Barred {
			list = append(list, of)
		}
	}
	return list
}

// Invite creates the link with which a user sets a password or a passkey. It replaces an
// earlier link. The current credentials of the user work until the link is used.
func (s *Service) Invite(ctx context.Context, organization, user, by string,
	lifetime time.Duration,
) (identity.Secret, time.Time, error) {
	u, ok := s.opts.Directory.User(organization, user)
	if !ok {
		return identity.Secret{}, time.Time{}, ErrUserMissing
	}
	of := subjectOf(u)
	now := time.Now().UTC()
	token := identity.GenerateSecret()
	hash := hashOf(token.Reveal())
	l := link{Subject: of, Begun: now, Ends: now.Add(lifetime).Truncate(time.Second)}
	if err := s.putRecord(ctx, linksPrefix+hash, l, 0); err != nil {
		return identity.Secret{}, time.Time{}, err
	}
	err := s.changePerson(ctx, of, func(p *person) error {
		p.Invitation = invitation{Hash: hash, By: by, Ends: l.Ends}
		return nil
	})
	return token, l.Ends, err
}

// changePerson changes the record of a user by compare and swap, and retries on conflicts.
func (s *Service) changePerson(ctx context.Context, of Subject, change func(*person) error) error {
	for {
		p, revision, ok, err := read[person](ctx, s.opts.Store, peoplePrefix+of.UID)
		if err != nil {
			return err
		}
		if !ok || !identity.SameEmail(p.Subject.Email, of.Email) {
			p = person{}
		}
		p.Subject, p.Begun = of, time.Now().UTC()
		if err := change(&p); err != nil {
			return err
		}
		if err := s.putRecord(ctx, peoplePrefix+of.UID, p, revision); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// Invited returns the user of an invitation link.
func (s *Service) Invited(ctx context.Context, token string) (Subject, error) {
	of, _, err := s.invited(ctx, token)
	return of, err
}

func (s *Service) invited(ctx context.Context, token string) (of Subject, revision int64, err error) {
	l, revision, err := s.link(ctx, token)
	if err != nil {
		return Subject{}, 0, err
	}
	p, _, ok, err := read[person](ctx, s.opts.Store, peoplePrefix+l.Subject.UID)
	if err != nil {
		return Subject{}, 0, err
	}
	if _, alive := s.Alive(l.Subject); !alive || l.Subject.User == "" || !ok || p.Invitation.Hash != hashOf(token) {
		return Subject{}, 0, ErrLinkUsed
	}
	return l.Subject, revision, nil
}

func (s *Service) link(ctx context.Context, token string) (link, int64, error) {
	if token == "" || len(token) > maxToken {
		return link{}, 0, ErrLinkUsed
	}
	l, revision, ok, err := read[link](ctx, s.opts.Store, linksPrefix+hashOf(token))
	if err != nil {
		return link{}, 0, err
	}
	if !ok || !time.Now().Before(l.Ends) {
		return link{}, 0, ErrLinkUsed
	}
	return l, revision, nil
}

// Accept consumes an invitation and sets the password of its user. The password replaces
// the old one and all passkeys, and all sessions of the user end, because an invitation is
// also the way to replace leaked credentials.
func (s *Service) Accept(ctx context.Context, token, password string) (Subject, error) {
	of, revision, err := s.invited(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	if err := CheckPassword(password, of); err != nil {
		return Subject{}, err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return Subject{}, err
	}
	return of, s.accept(ctx, of, token, revision, func(p *person) { p.Password = hash })
}

// consumeLink deletes a link. Only one of several concurrent calls succeeds.
func (s *Service) consumeLink(ctx context.Context, token string, revision int64) error {
	_, err := s.remove(ctx, linksPrefix+hashOf(token), revision)
	if errors.Is(err, ErrChanged) {
		return ErrLinkUsed
	}
	return err
}

// AdminLink creates a one-time link with which the operator of the server signs in as the
// system administrator's account.
func (s *Service) AdminLink(ctx context.Context, lifetime time.Duration) (identity.Secret, time.Time, error) {
	account, ok := s.opts.Directory.Account(s.opts.AdminOrganization, s.opts.AdminAccount)
	if !ok || account.ClientID == "" {
		return identity.Secret{}, time.Time{}, errs.Newf(errs.NotFound,
			"system administrator's account %s/%s does not exist; restore it with freshet admin reset-credentials",
			s.opts.AdminOrganization, s.opts.AdminAccount)
	}
	now := time.Now().UTC()
	token := identity.GenerateSecret()
	l := link{
		Subject: Subject{
			Organization: account.Organization, Account: account.Name, UID: account.UID,
			ClientID: account.ClientID,
		},
		Begun: now, Ends: now.Add(lifetime).Truncate(time.Second),
	}
	return token, l.Ends, s.putRecord(ctx, linksPrefix+hashOf(token.Reveal()), l, 0)
}

// FollowLink consumes the link of an account and returns the account.
func (s *Service) FollowLink(ctx context.Context, token string) (Subject, error) {
	l, revision, err := s.link(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	if _, alive := s.Alive(l.Subject); !alive || l.Subject.Account == "" {
		return Subject{}, ErrLinkUsed
	}
	return l.Subject, s.consumeLink(ctx, token, revision)
}

// CheckLink returns nil if the link of an account is still valid.
func (s *Service) CheckLink(ctx context.Context, token string) error {
	l, _, err := s.link(ctx, token)
	if err == nil && l.Subject.Account == "" {
		return ErrLinkUsed
	}
	return err
}
