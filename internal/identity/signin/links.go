package signin

import (
	"context"
	"errors"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Lifetimes of links.
const (
	DefaultInvitation = 7 * 24 * time.Hour
	MaxInvitation     = 30 * 24 * time.Hour
	AdminLinkLifetime = 15 * time.Minute
)

// Errors of links. ErrLinkUsed does not reveal which links and users exist.
var (
	ErrLinkUsed = errs.New(errs.Unauthenticated,
		"link is not valid any more: it was used, replaced by a newer one, or has expired")
	ErrUserMissing = errs.New(errs.NotFound, "user does not exist")
)

// Links manages one-time links: invitations of users, and sign-in links of the system
// administrator's account.
type Links struct {
	records  *indexedStore
	subjects *Subjects
	people   *People
	sessions *Sessions

	directory         *identity.Directory
	adminOrganization string
	adminAccount      string
}

// Invite creates the link with which a user sets a password or a passkey. It replaces an
// earlier link. The current credentials of the user work until the link is used.
func (s *Links) Invite(ctx context.Context, organization, user, by string,
	lifetime time.Duration,
) (identity.Secret, time.Time, error) {
	u, ok := s.directory.User(organization, user)
	if !ok {
		return identity.Secret{}, time.Time{}, ErrUserMissing
	}
	of := subjectOf(u)
	now := time.Now().UTC()
	token := identity.GenerateSecret()
	hash := hashOf(token.Reveal())
	l := link{Subject: of, Begun: now, Ends: now.Add(lifetime).Truncate(time.Second)}
	if err := s.records.put(ctx, linksPrefix+hash, l, 0); err != nil {
		return identity.Secret{}, time.Time{}, err
	}
	err := s.people.change(ctx, of, func(p *person) error {
		p.Invitation = invitation{Hash: hash, By: by, Ends: l.Ends}
		return nil
	})
	return token, l.Ends, err
}

// Invited returns the user of an invitation link.
func (s *Links) Invited(ctx context.Context, token string) (Subject, error) {
	of, _, err := s.invited(ctx, token)
	return of, err
}

func (s *Links) invited(ctx context.Context, token string) (of Subject, revision int64, err error) {
	l, revision, err := s.link(ctx, token)
	if err != nil {
		return Subject{}, 0, err
	}
	p, _, ok, err := read[person](ctx, s.records, peoplePrefix+l.Subject.UID)
	if err != nil {
		return Subject{}, 0, err
	}
	if _, alive := s.subjects.Alive(l.Subject); !alive || l.Subject.User == "" || !ok ||
		p.Invitation.Hash != hashOf(token) {
		return Subject{}, 0, ErrLinkUsed
	}
	return l.Subject, revision, nil
}

func (s *Links) link(ctx context.Context, token string) (link, int64, error) {
	if token == "" || len(token) > maxToken {
		return link{}, 0, ErrLinkUsed
	}
	l, revision, ok, err := read[link](ctx, s.records, linksPrefix+hashOf(token))
	if err != nil {
		return link{}, 0, err
	}
	if !ok || !time.Now().Before(l.Ends) {
		return link{}, 0, ErrLinkUsed
	}
	return l, revision, nil
}

// consumeLink deletes a link. Only one of several concurrent calls succeeds.
func (s *Links) consumeLink(ctx context.Context, token string, revision int64) error {
	_, err := s.records.remove(ctx, linksPrefix+hashOf(token), revision)
	if errors.Is(err, ErrChanged) {
		return ErrLinkUsed
	}
	return err
}

// AdminLink creates a one-time link with which the operator of the server signs in as the
// system administrator's account.
func (s *Links) AdminLink(ctx context.Context, lifetime time.Duration) (identity.Secret, time.Time, error) {
	account, ok := s.directory.Account(s.adminOrganization, s.adminAccount)
	if !ok || account.ClientID == "" {
		return identity.Secret{}, time.Time{}, errs.Newf(errs.NotFound,
			"system administrator's account %s/%s does not exist; restore it with freshet admin reset-credentials",
			s.adminOrganization, s.adminAccount)
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
	return token, l.Ends, s.records.put(ctx, linksPrefix+hashOf(token.Reveal()), l, 0)
}

// FollowLink consumes the link of an account and returns the account.
func (s *Links) FollowLink(ctx context.Context, token string) (Subject, error) {
	l, revision, err := s.link(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	if _, alive := s.subjects.Alive(l.Subject); !alive || l.Subject.Account == "" {
		return Subject{}, ErrLinkUsed
	}
	return l.Subject, s.consumeLink(ctx, token, revision)
}

// CheckLink returns nil if the link of an account is still valid.
func (s *Links) CheckLink(ctx context.Context, token string) error {
	l, _, err := s.link(ctx, token)
	if err == nil && l.Subject.Account == "" {
		return ErrLinkUsed
	}
	return err
}

// accept consumes an invitation and replaces all credentials of the user with those of set.
func (s *Links) accept(ctx context.Context, of Subject, token string, revision int64, set func(*person)) error {
	if err := s.consumeLink(ctx, token, revision); err != nil {
		return err
	}
	err := s.people.change(ctx, of, func(p *person) error {
		first := p.Password == "" && p.Since.IsZero()
		p.Password, p.Passkeys, p.Invitation, p.Known = "", nil, invitation{}, nil
		set(p)
		if first && p.Password != "" {
			p.Since = time.Now().UTC()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.sessions.endAll(ctx, of.UID)
}
