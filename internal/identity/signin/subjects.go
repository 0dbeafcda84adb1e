package signin

import (
	"slices"

	"freshet/internal/identity"
)

// Subjects finds the users and accounts that sign in. It has no state of its own: the
// directory contains them.
type Subjects struct {
	directory *identity.Directory
	issuer    *identity.Issuer
	provider  Provider // nil without a provider
}

// Alive reports whether a subject still exists with the same uid, address and credentials,
// and returns its display name.
func (s *Subjects) Alive(of Subject) (display string, ok bool) {
	if of.Account != "" {
		account, ok := s.directory.Account(of.Organization, of.Account)
		if !ok || account.UID != of.UID || !account.Accepts(of.ClientID) {
			return "", false
		}
		if account.System {
			return "System administrator", true
		}
		return account.Name, true
	}
	user, ok := s.directory.User(of.Organization, of.User)
	if !ok || user.UID != of.UID || user.Barred || !identity.SameEmail(user.Email, of.Email) {
		return "", false
	}
	if user.DisplayName != "" {
		return user.DisplayName, true
	}
	return user.Email, true
}

// subjectOf returns a user as the subject of records.
func subjectOf(u *identity.User) Subject {
	return Subject{Organization: u.Organization, User: u.Name, UID: u.UID, Email: u.Email}
}

// candidates returns the users of an organization with a name or an e-mail address: the user
// with the name first, then those with the address, sorted by name.
func (s *Subjects) candidates(organization, name string) []Subject {
	var found []Subject
	if user, ok := s.directory.User(organization, name); ok {
		found = append(found, subjectOf(user))
	}
	for _, user := range s.directory.UsersByEmail(name) {
		if of := subjectOf(user); user.Organization == organization && !user.Barred && !slices.Contains(found, of) {
			found = append(found, of)
		}
	}
	return found
}

// Matches reports whether a user has the typed organization, and name or e-mail address.
func (s *Subjects) Matches(of Subject, organization, name string) bool {
	return slices.ContainsFunc(s.candidates(organization, name), func(c Subject) bool { return c.UID == of.UID })
}

// UsersByVerifiedEmail returns the users with an e-mail address that the OpenID provider has verified.
func (s *Subjects) UsersByVerifiedEmail(email string) []Subject {
	if !s.trusts(email) {
		return nil
	}
	var list []Subject
	for _, user := range s.directory.UsersByEmail(email) {
		if of := subjectOf(user); !user.Barred {
			list = append(list, of)
		}
	}
	return list
}

// Principal returns the name of a subject in audit records.
func (s *Subjects) Principal(of Subject) string {
	return s.issuer.SessionPrincipal(&identity.Session{
		Organization: of.Organization, User: of.User,
		Account: of.Account,
	})
}

// trusts reports whether the OpenID provider is trusted for an e-mail address.
func (s *Subjects) trusts(email string) bool { return s.provider != nil && s.provider.Trusts(email) }
