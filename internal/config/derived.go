package config

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

// Path returns a path under the data directory.
func (c *Config) Path(elem ...string) string {
	return filepath.Join(append([]string{c.DataDir}, elem...)...)
}

// AuditPath returns the file of the audit trail, or "" when there is none.
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

// WithdrawnKeysFile returns where the operator names signing keys that may have
// leaked, one id in a line, or all of them as "all". Whoever can write it has the
// data directory, and with it the keys. The server removes it when it has obeyed.
func (c *Config) WithdrawnKeysFile() string { return c.Path("signing-keys.withdraw") }

// LogPath returns the file of the log, or "" for standard error.
func (c *Config) LogPath() string {
	if c.Log.File == "" || filepath.IsAbs(c.Log.File) {
		return c.Log.File
	}
	return c.Path(c.Log.File)
}

// PublicURL is BaseURL, or the URL of the first listener that is on. A listen
// address that names no host is reached as localhost. A server that listens on
// port 0 writes the real address back before it asks.
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

// PublicAddress is host and port of PublicURL, the port also when it is that of
// the scheme.
func (c *Config) PublicAddress() string {
	u, err := url.Parse(c.PublicURL())
	if err != nil {
		return "" // refused by Validate
	}
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// SecureURL is how the server is reached over TLS; "" when it is not. Kubernetes
// clients send the credentials of a kubeconfig over nothing else.
func (c *Config) SecureURL() string {
	switch {
	case strings.HasPrefix(c.BaseURL, "https:"):
		return c.BaseURL
	case c.HTTPS != Off:
		return "https://" + reachable(c.HTTPS)
	}
	return ""
}

// Issuer is IssuerURL, or PublicURL.
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
