package bundle

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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 20 * 365 * 24 * time.Hour
	memberLifetime    = 10 * 365 * 24 * time.Hour
	// clockSkew is the tolerated clock skew: how far a member's clock may lag.
	clockSkew = 24 * time.Hour
)

// The files in the certificate directory of an installed bundle.
const (
	caFile   = "ca.crt"
	certFile = "member.crt"
	keyFile  = "member.key"
	joinFile = "join.json"
)

// newAuthority creates a self-signed certificate authority.
func newAuthority(name string) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generating the key of authority %q: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(random(16)),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return Pair{}, fmt.Errorf("creating the certificate of authority %q: %w", name, err)
	}
	return pairOf(der, key)
}

// issue creates a member's certificate for its hosts. The common name is the member's name.
func (p Pair) issue(name string, hosts []string) (Pair, error) {
	authority, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		return Pair{}, fmt.Errorf("reading the certificate authority of the members: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generating the key of member %q: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(random(16)),
		Subject:      pkix.Name{Organization: []string{"Freshet members"}, CommonName: name},
		NotBefore:    time.Now().Add(-clockSkew),
		NotAfter:     time.Now().Add(memberLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		return Pair{}, fmt.Errorf("creating the certificate of member %q: %w", name, err)
	}
	return pairOf(der, key)
}

func pairOf(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}, nil
}

// Files are the paths of a member's certificate and key and of the ensemble's authority.
type Files struct{ CA, Cert, Key string }

// FilesIn returns the paths of an installed bundle's files in a certificate directory.
func FilesIn(dir string) Files {
	return Files{CA: filepath.Join(dir, caFile), Cert: filepath.Join(dir, certFile), Key: filepath.Join(dir, keyFile)}
}

// Credentials are a member's certificate and the authority that it trusts.
type Credentials struct {
	Files
	cert tls.Certificate
	pool *x509.CertPool
}

// reinstall is what the operator does about damaged files of a bundle.
func reinstall(self string) string {
	return fmt.Sprintf("install this member's bundle again with: freshet ensemble join %s.bundle --config FILE; if "+
		"the bundle is lost, create a new one with: freshet ensemble replace %s --only-bundle", self, self)
}

// Open reads a member's certificate and checks its name, its signature and its expiry.
func Open(dir, self string) (*Credentials, error) {
	c := &Credentials{Files: FilesIn(dir), pool: x509.NewCertPool()}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the ensemble's certificate authority: %w; %s", err, reinstall(self))
	}
	authority, err := parseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; %s", c.CA, err, reinstall(self))
	}
	c.pool.AddCert(authority)
	if c.cert, err = tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
		return nil, fmt.Errorf("reading the member's certificate %s and its key %s: %w; %s", c.Cert, c.Key, err,
			reinstall(self))
	}
	if err := c.cert.Leaf.CheckSignatureFrom(authority); err != nil {
		return nil, fmt.Errorf("%s or %s is damaged, or they are of different ensembles: %w; %s", c.Cert, c.CA, err,
			reinstall(self))
	}
	if name := c.cert.Leaf.Subject.CommonName; name != self {
		return nil, fmt.Errorf("bundle in %s belongs to member %q, but members.self is %q; install the bundle of "+
			"this member with freshet ensemble join", dir, name, self)
	}
	if end := c.cert.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("certificate of member %q expired on %s; create a new bundle with freshet "+
			"ensemble replace %s --only-bundle, and install it with freshet ensemble join", self,
			end.Format(time.DateOnly), self)
	}
	return c, nil
}

// parseCertificate reads a self-signed certificate in PEM and checks its signature.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("file contains no certificate in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return cert, cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature)
}

// Expiry returns when the certificate expires.
func (c *Credentials) Expiry() time.Time { return c.cert.Leaf.NotAfter }

// Authority returns the certificate authority of all members.
func (c *Credentials) Authority() *x509.CertPool { return c.pool }

// errNotMember rejects a certificate of the ensemble's authority that names no listed member.
var errNotMember = errors.New("certificate does not belong to a member in members.list")

// ServerTLS returns the TLS configuration for a listener that accepts only other members.
func (c *Credentials) ServerTLS(members []string, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		Certificates: []tls.Certificate{c.cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.pool,
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, name := range members {
				if name == PeerMember(&state) {
					return nil
				}
			}
			return errNotMember
		},
	}
}

// ClientTLS returns the TLS configuration for a connection to a member. It verifies that the
// certificate is that member's.
func (c *Credentials) ClientTLS(member string, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		Certificates: []tls.Certificate{c.cert}, RootCAs: c.pool,
		VerifyConnection: func(state tls.ConnectionState) error {
			if name := PeerMember(&state); name != member {
				return fmt.Errorf("certificate belongs to member %q, want %q", name, member)
			}
			return nil
		},
	}
}

// PeerMember returns the name in the peer's certificate, or "" when it has none.
func PeerMember(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	return state.PeerCertificates[0].Subject.CommonName
}
