package config

import (
	"net/url"
	"os"
	"strings"
	"time"
)

// SignIn says how people sign in.
type SignIn struct {
	// TokenLifetime is how long their access tokens live; clients renew them.
	TokenLifetime Duration `json:"tokenLifetime"`
	// SessionLifetime is how long somebody stays signed in in a browser.
	SessionLifetime Duration `json:"sessionLifetime"`
	// DeviceLifetime is how long a device stays signed in that does not renew its
	// tokens.
	DeviceLifetime Duration `json:"deviceLifetime"`
	// OpenID is a provider elsewhere that vouches for e-mail addresses.
	OpenID OpenID `json:"openID"`
}

// OpenID says where an OpenID provider is and who this server is to it. Without an
// issuer there is none.
type OpenID struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// ClientSecretFile holds the secret; it is read at the start. Without it this
	// server is a public client.
	ClientSecretFile string `json:"clientSecretFile"`
	// Name is what people know the provider by.
	Name string `json:"name"`
	// Domains are those whose addresses it may vouch for; none: all.
	Domains []string `json:"domains,omitempty"`
}

func defaultSignIn() SignIn {
	return SignIn{
		TokenLifetime: Duration(10 * time.Minute), SessionLifetime: Duration(12 * time.Hour),
		DeviceLifetime: Duration(30 * 24 * time.Hour),
		OpenID:         OpenID{Name: "single sign-on"},
	}
}

func (c *Config) validateSignIn(p *problems) {
	s := &c.SignIn
	for _, l := range []struct {
		field     string
		value     Duration
		low, high time.Duration
	}{
		{"signIn.tokenLifetime", s.TokenLifetime, time.Minute, time.Hour},
		{"signIn.sessionLifetime", s.SessionLifetime, 5 * time.Minute, 30 * 24 * time.Hour},
		{"signIn.deviceLifetime", s.DeviceLifetime, time.Hour, 90 * 24 * time.Hour},
	} {
		if l.value.Std() < l.low || l.value.Std() > l.high {
			p.addf(l.field, "%s is not between %s and %s", l.value, l.low, l.high)
		}
	}
	o := &s.OpenID
	if o.Issuer == "" {
		if o.ClientID != "" || o.ClientSecretFile != "" {
			p.addf("signIn.openID.issuer",
				"must be the address of the OpenID provider when the other settings are given")
		}
		return
	}
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		p.addf("signIn.openID.issuer", "%q must be the address of the OpenID provider, https://…", redactURL(o.Issuer))
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Host) || u.Port() == ""):
		p.addf("signIn.openID.issuer", "%q must begin with https://; http:// is for providers on this machine",
			o.Issuer)
	}
	if o.ClientID == "" {
		p.addf("signIn.openID.clientID", "must be the id under which the provider knows this server")
	}
	if o.Name == "" {
		p.addf("signIn.openID.name", "must be what people know the provider by")
	}
	if _, err := os.ReadFile(o.ClientSecretFile); err != nil && o.ClientSecretFile != "" {
		p.addf("signIn.openID.clientSecretFile", "cannot be read: %v", err)
	}
	for _, domain := range o.Domains {
		if domain == "" || strings.ContainsAny(domain, "@ /") {
			p.addf("signIn.openID.domains", "%q must be the part of e-mail addresses after the @", domain)
		}
	}
}
