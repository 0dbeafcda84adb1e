package signin

import (
	"context"
	"errors"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// How somebody has proved who they are; in records and metrics.
const (
	MethodPassword   = "password"
	MethodPasskey    = "passkey"
	MethodInvitation = "invitation"
	MethodLink       = "link"
	MethodProvider   = "openid"
)

// How long links are good.
const (
	DefaultInvitation = 7 * 24 * time.Hour
	MaxInvitation     = 30 * 24 * time.Hour
	AdminLinkLifetime = 15 * time.Minute
)

// maxToken bounds what is taken for one of our tokens.
const maxToken = 256

// Refusals. They do not tell what there is from what there is not.
var (
	ErrWrongPassword = errs.New(errs.Unauthenticated, "organization, name or password is wrong")
	ErrLinkUsed      = errs.New(errs.Unauthenticated,
		"the link is not good any more: it was used, replaced by a newer one, or its time is up")
	ErrNobody = errs.New(errs.NotFound, "there is no such user")
)

// subjectOf is a user as the owner of records.
func subjectOf(u *identity.User) Subject {
	return Subject{Organization: u.Organization, User: u.Name, UID: u.UID, Email: u.Email}
}

// find looks for a person of an organization by name, or by an address that only
// one of them has.
func (s *Service) find(organization, who string) (Subject, bool) {
	if user, ok := s.opts.Directory.User(organization, who); ok {
		return subjectOf(user), true
	}
	var found []*identity.User
	for _, user := range s.opts.Directory.UsersByEmail(who) {
		if user.Organization == organization && !user.Barred {
			found = append(found, user)
		}
	}
	if len(found) != 1 {
		return Subject{}, false
	}
	return subjectOf(found[0]), true
}

// Authenticate finds who has a password. Whoever is unknown, has none, or may not
// sign in costs as much as a wrong one.
func (s *Service) Authenticate(ctx context.Context, organization, who, password string) (Subject, error) {
	of, known := s.find(organization, who)
	stored := ""
	key := people + of.UID
	if !known {
		key = people + "none" // as many calls of the store
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

// Vouched lists the people for whose address a provider has vouched.
func (s *Service) Vouched(email string) []Subject {
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

// Invite makes the one link with which a person sets a password or a passkey. An
// earlier one is not good any more; what the person has goes on working until the
// link is used.
func (s *Service) Invite(ctx context.Context, organization, user, by string,
	lifetime time.Duration,
) (identity.Secret, time.Time, error) {
	u, ok := s.opts.Directory.User(organization, user)
	if !ok {
		return identity.Secret{}, time.Time{}, ErrNobody
	}
	of := subjectOf(u)
	now := time.Now().UTC()
	token := identity.GenerateSecret()
	hash := hashOf(token.Reveal())
	l := link{Subject: of, Begun: now, Ends: now.Add(lifetime).Truncate(time.Second)}
	if err := s.write(ctx, links+hash, l, 0); err != nil {
		return identity.Secret{}, time.Time{}, err
	}
	err := s.changePerson(ctx, of, func(p *person) error {
		p.Invitation = invitation{Hash: hash, By: by, Ends: l.Ends}
		return nil
	})
	return token, l.Ends, err
}

// changePerson rewrites what is known of a person until nobody was faster.
func (s *Service) changePerson(ctx context.Context, of Subject, change func(*person) error) error {
	for {
		p, revision, ok, err := read[person](ctx, s.opts.Store, people+of.UID)
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
		if err := s.write(ctx, people+of.UID, p, revision); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// Invited tells whose invitation a link is.
func (s *Service) Invited(ctx context.Context, token string) (Subject, error) {
	of, _, err := s.invited(ctx, token)
	return of, err
}

func (s *Service) invited(ctx context.Context, token string) (of Subject, revision int64, err error) {
	l, revision, err := s.link(ctx, token)
	if err != nil {
		return Subject{}, 0, err
	}
	p, _, ok, err := read[person](ctx, s.opts.Store, people+l.Subject.UID)
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
	l, revision, ok, err := read[link](ctx, s.opts.Store, links+hashOf(token))
	if err != nil {
		return link{}, 0, err
	}
	if !ok || !time.Now().Before(l.Ends) {
		return link{}, 0, ErrLinkUsed
	}
	return l, revision, nil
}

// Accept uses an invitation up and sets the password of whose it is, instead of every
// password and passkey that they had. Every session that they had ends: an invitation
// is also how something is replaced that others know or have.
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

// use removes a link; of several who try, one succeeds.
func (s *Service) use(ctx context.Context, token string, revision int64) error {
	_, err := s.remove(ctx, links+hashOf(token), revision)
	if errors.Is(err, ErrChanged) {
		return ErrLinkUsed
	}
	return err
}

// AdminLink makes a one-time link for the owner of the server, who signs in with it
// as the system administrator's account.
func (s *Service) AdminLink(ctx context.Context, lifetime time.Duration) (identity.Secret, time.Time, error) {
	account, ok := s.opts.Directory.Account(s.opts.AdminOrganization, s.opts.AdminAccount)
	if !ok || account.ClientID == "" {
		return identity.Secret{}, time.Time{}, errs.Newf(errs.NotFound,
			"there is no system administrator's account %s/%s to sign in as: bring it back with freshet admin "+
				"reset-credentials", s.opts.AdminOrganization, s.opts.AdminAccount)
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
	return token, l.Ends, s.write(ctx, links+hashOf(token.Reveal()), l, 0)
}

// FollowLink uses a link of an account up.
func (s *Service) FollowLink(ctx context.Context, token string) (Subject, error) {
	l, revision, err := s.link(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	if _, alive := s.Alive(l.Subject); !alive || l.Subject.Account == "" {
		return Subject{}, ErrLinkUsed
	}
	return l.Subject, s.use(ctx, token, revision)
}

// LinkGood says whether a link of an account can still be followed.
func (s *Service) LinkGood(ctx context.Context, token string) error {
	l, _, err := s.link(ctx, token)
	if err == nil && l.Subject.Account == "" {
		return ErrLinkUsed
	}
	return err
}
