package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/lru"
	"freshet/internal/base/privatefile"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// leafLifetime is the lifetime of a certificate, leafRenewal the maximum age of one that is
	// sent to clients. So it is valid for at least the difference.
	leafLifetime = 7 * 24 * time.Hour
	leafRenewal  = 24 * time.Hour
	// leafSkew is how far a client's clock may be behind.
	leafSkew = time.Hour
	// maxLeaves bounds the cached certificates. Every client can request any name under the
	// domain. A cache miss costs one signature, as every handshake does.
	maxLeaves = 1024
)

// authority is the server's own certificate authority for HTTPS, used if no certificate is
// configured. It issues a certificate for a name when a client first requests it, and only
// for the server's own names: the configured names, all names under the domain, and the
// address to which the client connected. Certificates are short-lived and cached in memory.
// Clients trust the authority.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	domain string
	names  []string // DNS names and addresses of the server's own certificate
	log    *slog.Logger

	leafKey *ecdsa.PrivateKey // key of every certificate that this process issues
	leaves  *lru.Cache[leafCacheKey, *tls.Certificate]
	now     func() time.Time
}

// leafCacheKey is the cache key of a certificate: its name, or "" for the server's names, and its
// renewal period.
type leafCacheKey struct {
	name   string
	period int64
}

// newAuthority returns the authority in dir, and creates one at the first start.
func newAuthority(dir, domain string, names []string, log *slog.Logger) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the TLS directory: %w", err)
	}
	cert, key, err := readOrCreateAuthority(dir)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the HTTPS key: %w", err)
	}
	a := &authority{
		cert: cert, key: key, domain: strings.ToLower(domain), names: names, log: log,
		leafKey: leafKey, leaves: lru.New[leafCacheKey, *tls.Certificate](maxLeaves), now: time.Now,
	}
	_, err = a.certificateFor("") // reports configuration errors at the start
	return a, err
}

// getCertificate implements tls.Config.GetCertificate. A client that requests a name of
// another server gets the certificate for this server's names, which does not match.
func (a *authority) getCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := a.certificateFor(a.nameFor(hello))
	if err != nil {
		a.log.Error("HTTPS certificate could not be issued; the handshake fails", slog.Any("error", err))
	}
	return cert, err
}

// nameFor returns the name for which a separate certificate is issued, or "" for the
// certificate of the server's names.
func (a *authority) nameFor(hello *tls.ClientHelloInfo) string {
	name := strings.ToLower(hello.ServerName)
	if name == "" { // clients that connect to an IP address send no name
		return a.addressOf(hello.Conn)
	}
	if !strings.HasSuffix(name, "."+a.domain) || !isHostName(name) || slices.Contains(a.names, name) {
		return ""
	}
	return name
}

// addressOf returns the IP address to which a client connected, or "" if it is one of the
// server's names.
func (a *authority) addressOf(conn net.Conn) string {
	if conn == nil {
		return ""
	}
	tcp, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok || slices.Contains(a.names, tcp.IP.String()) {
		return ""
	}
	return tcp.IP.String()
}

// isHostName reports whether a name is a valid host name.
func isHostName(name string) bool {
	const maxName, maxLabel = 253, 63
	if len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

// certificateFor returns the certificate for a name, from the cache if it has one of this period.
func (a *authority) certificateFor(name string) (*tls.Certificate, error) {
	key := leafCacheKey{name, a.now().UnixNano() / int64(leafRenewal)}
	if cert, ok := a.leaves.Get(key); ok {
		return cert, nil
	}
	cert, err := a.issue(key)
	if err != nil {
		return nil, fmt.Errorf("issuing the HTTPS certificate for %q: %w", name, err)
	}
	return a.leaves.Add(key, cert, 1), nil
}

func (a *authority) issue(of leafCacheKey) (*tls.Certificate, error) {
	names := a.names
	switch {
	case net.ParseIP(of.name) != nil:
		// With all names, because the client may have used another address or a name of
		// this server.
		names = append(slices.Clone(names), of.name)
	case of.name != "":
		names = []string{of.name}
	}
	began := time.Unix(0, of.period*int64(leafRenewal))
	template := &x509.Certificate{
		SerialNumber: serialNumber(),
		Subject:      pkix.Name{Organization: []string{"Freshet"}},
		NotBefore:    began.Add(-leafSkew),
		NotAfter:     began.Add(leafLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.leafKey.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leafKey, Leaf: parsed}, nil
}

// readOrCreateAuthority reads the certificate and key of the authority, or creates them at the first
// start.
func readOrCreateAuthority(dir string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, nil, fmt.Errorf("%s is not a key that this server created", keyFile)
		}
		return pair.Leaf, key, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the key of the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serialNumber(),
		Subject:               pkix.Name{CommonName: "Freshet development CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the certificate authority: %w", err)
	}
	return cert, key, errors.Join(writeKey(keyFile, key), writePEM(certFile, "CERTIFICATE", der))
}

func serialNumber() *big.Int {
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		panic("crypto/rand failed: " + err.Error()) // cannot happen; crypto/rand aborts the process instead
	}
	return n
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return writePEM(path, "PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return privatefile.Write(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
