package identity

import (
	"net/url"
	"strings"
	"time"
)

// Instances looks up the instances for which tokens can be issued.
type Instances interface {
	// TokenLifetime returns the lifetime of access tokens for an instance (0 for the
	// default), and whether the instance exists.
	TokenLifetime(organization, instance string) (time.Duration, bool)
}

// Audiences are the audiences for which the server issues access tokens
// (docs/spec/resources.md#r10).
type Audiences struct {
	// Addresses are the URLs of the resource API. The first one is its base URL: the
	// default audience, and an audience of every token for the resource API.
	Addresses []string
	Instances Instances     // nil without data planes
	Lifetime  time.Duration // of tokens for the resource API; 0 for the default
}

// Resolve returns the audiences and the lifetime of a token for the account. The requested
// audience is an address of the resource API (the default) or one data plane. host is the
// Host header of the request; it counts as an address of the resource API. ok is false if
// the audience is unknown or belongs to another organization.
func (a *Audiences) Resolve(account *Account, requested,
	host string,
) (audiences []string, lifetime time.Duration, ok bool) {
	primary := a.Addresses[0]
	if requested == "" || requested == primary {
		return []string{primary}, a.Lifetime, true
	}
	if organization, instance, ok := ParseInstanceAudience(requested); ok {
		if a.Instances == nil || (organization != account.Organization && !account.System) {
			return nil, 0, false
		}
		lifetime, ok := a.Instances.TokenLifetime(organization, instance)
		return []string{requested}, lifetime, ok
	}
	if a.isResourceAPI(requested, host) {
		// The requested spelling, because clients compare it, and the base URL, which
		// the resource API always accepts.
		return []string{requested, primary}, a.Lifetime, true
	}
	return nil, 0, false
}

// isResourceAPI reports whether an address is one of the resource API: a configured address, or
// the host of the current request.
func (a *Audiences) isResourceAPI(address, host string) bool {
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
