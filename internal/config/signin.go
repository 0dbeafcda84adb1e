package config

import (
	"net/url"
	"os"
	"strings"
	"time"
)

// SignIn configures the sign-in of people.
type SignIn struct {
	// TokenLifetime is the lifetime of their access tokens; clients renew them.
	TokenLifetime Duration `json:"tokenLifetime"`
	// SessionLifetime is the lifetime of a browser session.
	SessionLifetime Duration `json:"sessionLifetime"`
	// DeviceLifetime is how long a device stays signed in without renewing its tokens.
	DeviceLifetime Duration `json:"deviceLifetime"`
	// OpenID is the external OpenID provider.
	OpenID OpenID `json:"openID"`
}

// OpenID configures an OpenID provider and this server's registration there. An empty
// issuer disables it.
type OpenID struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// ClientSecretFile contains the secret. The server reads it at the start. Without it
	// this server is a public client.
	ClientSecretFile string `json:"clientSecretFile"`
	// Name is the provider's name on the sign-in button.
	Name string `json:"name"`
	// Domains are the e-mail domains that the server accepts from the provider; empty
	// accepts all.
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
				"must be the URL of the OpenID provider when the other settings are set")
		}
		return
	}
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		p.addf("signIn.openID.issuer", "%q must be the URL of the OpenID provider, https://…", redactURL(o.Issuer))
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Host) || u.Port() == ""):
		p.addf("signIn.openID.issuer", "%q must start with https://; http:// is only for providers on this machine",
			o.Issuer)
	}
	if o.ClientID == "" {
		p.addf("signIn.openID.clientID", "must be the client id of this server at the provider")
	}
	if o.Name == "" {
		p.addf("signIn.openID.name", "must be the provider's name for the sign-in button")
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
