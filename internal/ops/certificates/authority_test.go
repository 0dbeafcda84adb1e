package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openTLS returns the TLS configuration of a server in a directory, without certificate files
// unless change sets some.
func openTLS(t *testing.T, dir string, change func(*Options)) *tls.Config {
	t.Helper()
	opts := Options{
		Dir: filepath.Join(dir, "tls"), Domain: "freshet.localhost",
		Names: []string{"localhost", "127.0.0.1", "::1", "freshet.localhost", "stream.example", "192.0.2.7"},
		Log:   slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&opts)
	}
	out, _, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func rootsOf(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatal("ca.crt contains no certificate")
	}
	return roots
}

// connectedTo is a connection with only a local address.
type connectedTo struct {
	net.Conn
	ip string
}

func (c connectedTo) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 8443} }

func TestCertificatesForTheServersOwnNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := openTLS(t, dir, nil)
	roots := rootsOf(t, dir)
	longest := strings.Repeat("l", 63)
	tests := map[string]struct {
		sni, address string // of the connection
		verify       string // the name that the client verifies
		fits         bool
	}{
		"a cluster":   {"prod.acme.freshet.localhost", "127.0.0.1", "prod.acme.freshet.localhost", true},
		"in capitals": {"Prod.ACME.freshet.localhost", "127.0.0.1", "prod.acme.freshet.localhost", true},
		"a cluster with the longest names": {
			longest + "." + longest + ".freshet.localhost", "127.0.0.1",
			longest + "." + longest + ".freshet.localhost", true,
		},
		"a cluster with a dot in its name": {
			"a.b.acme.freshet.localhost", "127.0.0.1",
			"a.b.acme.freshet.localhost", true,
		},
		"the domain":                        {"freshet.localhost", "127.0.0.1", "freshet.localhost", true},
		"localhost":                         {"localhost", "127.0.0.1", "localhost", true},
		"a configured name":                 {"stream.example", "127.0.0.1", "stream.example", true},
		"no name, loopback":                 {"", "127.0.0.1", "127.0.0.1", true},
		"no name, the address connected to": {"", "198.51.100.4", "198.51.100.4", true},
		"no name, a configured address":     {"", "198.51.100.4", "192.0.2.7", true},
		"a name of another server":          {"bank.example", "127.0.0.1", "bank.example", false},
		"a name with the domain as suffix":  {"evilfreshet.localhost", "127.0.0.1", "evilfreshet.localhost", false},
		"under a configured name":           {"x.stream.example", "127.0.0.1", "x.stream.example", false},
		"not a host name":                   {"a_b.freshet.localhost", "127.0.0.1", "a_b.freshet.localhost", false},
		"an asterisk":                       {"*.freshet.localhost", "127.0.0.1", "x.freshet.localhost", false},
		"an address of another server":      {"", "127.0.0.1", "203.0.113.9", false},
		"a label that is too long": {
			longest + "l.freshet.localhost", "127.0.0.1",
			longest + "l.freshet.localhost", false,
		},
		"an empty label":                   {"a..freshet.localhost", "127.0.0.1", "a..freshet.localhost", false},
		"a name that begins with a hyphen": {"-a.freshet.localhost", "127.0.0.1", "-a.freshet.localhost", false},
		"another cluster than the requested": {
			"prod.acme.freshet.localhost", "127.0.0.1",
			"dev.acme.freshet.localhost", false,
		},
		"longer than a DNS name": {
			strings.Repeat("abcdefg.", 40) + "freshet.localhost", "127.0.0.1",
			strings.Repeat("abcdefg.", 40) + "freshet.localhost", false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert, err := conf.GetCertificate(&tls.ClientHelloInfo{
				ServerName: tc.sni,
				Conn:       connectedTo{ip: tc.address},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.verify})
			if (err == nil) != tc.fits {
				t.Errorf("certificate for %q, with names %v and addresses %v: verifying %q returns %v, want success %v",
					tc.sni, cert.Leaf.DNSNames, cert.Leaf.IPAddresses, tc.verify, err, tc.fits)
			}
		})
	}
}

func TestTheAuthorityStaysAndItsKeyIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	openTLS(t, dir, nil)
	roots := rootsOf(t, dir)
	again := openTLS(t, dir, nil)
	cert, err := again.GetCertificate(&tls.ClientHelloInfo{ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost"}); err != nil {
		t.Errorf("after a restart: %v, want the same authority", err)
	}
	info, err := os.Stat(filepath.Join(dir, "tls", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("ca.key has mode %o, want 600", mode)
	}
}

func TestCertificatesAreShortLivedAndRenewed(t *testing.T) {
	t.Parallel()
	a, err := newAuthority(t.TempDir(), "freshet.localhost", []string{"localhost"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	a.now = func() time.Time { return now }
	const name = "c.acme.freshet.localhost"
	var last *tls.Certificate
	for day := range 40 {
		cert, err := a.certificateFor(name)
		if err != nil {
			t.Fatal(err)
		}
		if cert == last {
			t.Errorf("day %d: got the certificate of the day before, want a new one", day)
		}
		if again, _ := a.certificateFor(name); again != cert {
			t.Errorf("day %d: got another certificate at the second call, want the same", day)
		}
		if left := cert.Leaf.NotAfter.Sub(now); left < leafLifetime-leafRenewal || left > leafLifetime ||
			now.Before(cert.Leaf.NotBefore) {
			t.Errorf("day %d: certificate is valid from %v for another %v, want at least %v", day,
				cert.Leaf.NotBefore, left, leafLifetime-leafRenewal)
		}
		last, now = cert, now.Add(leafRenewal)
	}
}

// TestCertificateCacheIsBounded checks that the cache is bounded, because every client can
// request any name in the domain.
func TestCertificateCacheIsBounded(t *testing.T) {
	t.Parallel()
	a, err := newAuthority(t.TempDir(), "freshet.localhost", []string{"localhost"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.certificateFor("first.freshet.localhost")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxLeaves {
		if _, err := a.certificateFor(fmt.Sprintf("c%d.freshet.localhost", i)); err != nil {
			t.Fatal(err)
		}
	}
	if again, _ := a.certificateFor("first.freshet.localhost"); again == first {
		t.Errorf("certificate is still cached after %d others, want it evicted", maxLeaves)
	}
}

func TestConfiguredFilesWinForEveryName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := certificateFiles(t, dir)
	conf := openTLS(t, dir, func(o *Options) { o.CertFile, o.KeyFile = certFile, keyFile })
	for _, sni := range []string{"given.example", "prod.acme.freshet.localhost", ""} {
		cert, err := conf.GetCertificate(&tls.ClientHelloInfo{ServerName: sni, Conn: connectedTo{ip: "127.0.0.1"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := cert.Leaf.VerifyHostname("given.example"); err != nil {
			t.Errorf("%q: %v, want the configured certificate", sni, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tls")); !os.IsNotExist(err) {
		t.Errorf("authority exists in addition to the configured files: %v", err)
	}
}
