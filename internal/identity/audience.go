package identity

import (
	"net/url"
	"strings"
	"time"
)

// Instances knows the data planes that tokens can be made for.
type Instances interface {
	// TokenLifetime returns how long access tokens of an instance live (0 for
	// the default), and whether there is such an instance.
	TokenLifetime(organization, instance string) (time.Duration, bool)
}

// Audiences are what access tokens can be good for
// (docs/spec/resources.md#r10).
type Audiences struct {
	// Addresses are those of the resource API. The first one is its base URL:
	// the default, and an audience of every token for it.
	Addresses []string
	Instances Instances     // nil when there are no data planes
	Lifetime  time.Duration // of tokens for the resource API; 0 for the default
}

// Resolve decides what a token of the account will be good for, and for how
// long: the resource API by any of its addresses, which is also the default, or
// one data plane. host is where the caller has just reached this server, which
// counts as an address too. ok is false for what is unknown or another
// organization's.
func (a *Audiences) Resolve(account *Account, wanted,
	host string,
) (audiences []string, lifetime time.Duration, ok bool) {
	primary := a.Addresses[0]
	if wanted == "" || wanted == primary {
		return []string{primary}, a.Lifetime, true
	}
	if organization, instance, ok := ParseInstanceAudience(wanted); ok {
		if a.Instances == nil || (organization != account.Organization && !account.System) {
			return nil, 0, false
		}
		lifetime, ok := a.Instances.TokenLifetime(organization, instance)
		return []string{wanted}, lifetime, ok
	}
	if a.isOurs(wanted, host) {
		// As it was asked for, since clients compare; and the name that the
		// resource API always answers to.
		return []string{wanted, primary}, a.Lifetime, true
	}
	return nil, 0, false
}

// isOurs reports whether an address means the resource API: a configured one,
// or the one at which the caller has just reached this very server.
func (a *Audiences) isOurs(address, host string) bool {
	canonical := CanonicalURL(address)
	for _, known := range a.Addresses {
		if CanonicalURL(known) == canonical {
			return true
		}
	}
	u, err := url.Parse(canonical)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Path == "" && u.RawQuery == "" &&
		u.Fragment == "" && u.User == nil &&
		host != "" && strings.EqualFold(u.Host, strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443"))
}
