package config

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"freshet/internal/base/proxies"
)

// Path returns a path under the data directory.
func (c *Config) Path(elem ...string) string {
	return filepath.Join(append([]string{c.DataDir}, elem...)...)
}

// AuditPath returns the file of the audit log, or "" if the log is off.
func (c *Config) AuditPath() string {
	switch {
	case c.Audit.Path == Off:
		return ""
	case filepath.IsAbs(c.Audit.Path):
		return c.Audit.Path
	}
	return c.Path(c.Audit.Path)
}

// EncryptionKeyFile returns the file of the keys that encrypt secrets at rest.
func (c *Config) EncryptionKeyFile() string {
	if c.EncryptionKey.File != "" {
		return c.EncryptionKey.File
	}
	return c.Path("encryption.key")
}

// WithdrawnKeysFile returns the file in which the operator lists signing keys that may
// have leaked, one id per line, or "all" for all keys. It needs no authentication, because
// a user who can write it can also read the keys in the data directory. The server removes
// the file when it has withdrawn the keys.
func (c *Config) WithdrawnKeysFile() string { return c.Path("signing-keys.withdraw") }

// LogPath returns the file of the log, or "" for standard error.
func (c *Config) LogPath() string {
	if c.Log.File == "" || filepath.IsAbs(c.Log.File) {
		return c.Log.File
	}
	return c.Path(c.Log.File)
}

// PublicURL returns BaseURL, or the URL of the HTTP listener, or that of the HTTPS listener.
// An unspecified listen address becomes localhost. A server that listens on port 0 must
// write the real address into the configuration before it calls PublicURL.
func (c *Config) PublicURL() string {
	switch {
	case c.BaseURL != "":
		return c.BaseURL
	case c.HTTP != Off:
		return "http://" + reachable(c.HTTP)
	default:
		return "https://" + reachable(c.HTTPS)
	}
}

// PublicAddress returns host and port of PublicURL. It adds the scheme's default port.
func (c *Config) PublicAddress() string {
	u, err := url.Parse(c.PublicURL())
	if err != nil {
		return "" // Validate rejects it
	}
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// SecureURL returns the URL of the server over TLS, or "" without TLS. Kubernetes clients
// send the credentials of a kubeconfig only over TLS.
func (c *Config) SecureURL() string {
	switch {
	case strings.HasPrefix(c.BaseURL, "https:"):
		return c.BaseURL
	case c.HTTPS != Off:
		return "https://" + reachable(c.HTTPS)
	}
	return ""
}

// Issuer returns IssuerURL, or PublicURL if it is empty.
func (c *Config) Issuer() string {
	if c.IssuerURL != "" {
		return c.IssuerURL
	}
	return c.PublicURL()
}

func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// BundleDir returns the folder with this member's certificate.
func (c *Config) BundleDir() string {
	if filepath.IsAbs(c.Members.Bundle) {
		return c.Members.Bundle
	}
	return c.Path(c.Members.Bundle)
}

// CertificateNames returns the names of the server for its certificate, without those of
// clusters, which are under the domain.
func (c *Config) CertificateNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1", c.Domain}
	if base, err := url.Parse(c.PublicURL()); err == nil && base.Hostname() != "" {
		names = append(names, strings.ToLower(base.Hostname()))
	}
	names = append(names, c.TLS.Names...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Set returns the trusted proxies of a valid configuration.
func (p *Proxies) Set() proxies.Set {
	set, err := proxies.Parse(p.Trusted)
	if err != nil {
		return proxies.Set{} // not valid: trust none
	}
	return set
}

// SendProtocol reports whether the proxies send the PROXY protocol to a listener.
func (p *Proxies) SendProtocol(listener string) bool { return slices.Contains(p.Protocol, listener) }
