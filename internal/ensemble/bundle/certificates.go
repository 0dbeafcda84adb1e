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
	authorityLife = 20 * 365 * 24 * time.Hour
	memberLife    = 10 * 365 * 24 * time.Hour
	// skew is how far the clock of a member may be behind.
	skew = 24 * time.Hour
)

// The files of a bundle that is unpacked.
const (
	caFile   = "ca.crt"
	certFile = "member.crt"
	keyFile  = "member.key"
	joinFile = "join.json"
)

// newAuthority makes an authority.
func newAuthority(name string) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of an authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(random(16)),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-skew),
		NotAfter:              time.Now().Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return Pair{}, fmt.Errorf("making an authority: %w", err)
	}
	return pairOf(der, key)
}

// issue makes the certificate of a member, for the hosts that it is reached at. Its
// common name is the member's.
func (p Pair) issue(name string, hosts []string) (Pair, error) {
	authority, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		return Pair{}, fmt.Errorf("reading the authority of the members: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of member %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(random(16)),
		Subject:      pkix.Name{Organization: []string{"Freshet members"}, CommonName: name},
		NotBefore:    time.Now().Add(-skew),
		NotAfter:     time.Now().Add(memberLife),
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
		return Pair{}, fmt.Errorf("making the certificate of member %s: %w", name, err)
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

// Files are a member's certificate and the authority of the group.
type Files struct{ CA, Cert, Key string }

// FilesIn names the files of a bundle that was unpacked into a folder.
func FilesIn(dir string) Files {
	return Files{CA: filepath.Join(dir, caFile), Cert: filepath.Join(dir, certFile), Key: filepath.Join(dir, keyFile)}
}

// Credentials are what a member shows to others and knows them by.
type Credentials struct {
	Files
	cert tls.Certificate
	pool *x509.CertPool
}

// Open reads the certificate of a member and checks that it is the member's.
func Open(dir, self string) (*Credentials, error) {
	c := &Credentials{Files: FilesIn(dir), pool: x509.NewCertPool()}
	authority, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf(
			"reading the certificates of the group: %w; unpack this member's bundle with freshet cluster join", err)
	}
	if !c.pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate; unpack this member's bundle again with freshet cluster join",
			c.CA)
	}
	if c.cert, err = tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
		return nil, fmt.Errorf(
			"reading the member's certificate: %w; unpack this member's bundle with freshet cluster join", err)
	}
	if name := c.cert.Leaf.Subject.CommonName; name != self {
		return nil, fmt.Errorf("the bundle in %s is that of member %q, and members.self is %q; join with the bundle "+
			"of this member", dir, name, self)
	}
	if end := c.cert.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("the certificate of member %s has ended on %s; make a new bundle with freshet "+
			"cluster replace", self, end.Format(time.DateOnly))
	}
	return c, nil
}

// Ends is when the certificate does.
func (c *Credentials) Ends() time.Time { return c.cert.Leaf.NotAfter }

// Authority of all members.
func (c *Credentials) Authority() *x509.CertPool { return c.pool }

// errNotMember is a certificate of the group that names nobody in the list.
var errNotMember = errors.New("the certificate is not that of a member in members.list")

// Server is for listeners of members: only other members may connect.
func (c *Credentials) Server(members []string, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		Certificates: []tls.Certificate{c.cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.pool,
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, name := range members {
				if name == MemberOf(&state) {
					return nil
				}
			}
			return errNotMember
		},
	}
}

// Client is for a connection to a member, whose certificate must be its own.
func (c *Credentials) Client(member string, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		Certificates: []tls.Certificate{c.cert}, RootCAs: c.pool,
		VerifyConnection: func(state tls.ConnectionState) error {
			if name := MemberOf(&state); name != member {
				return fmt.Errorf("the certificate is that of member %q, not of %q", name, member)
			}
			return nil
		},
	}
}

// MemberOf is the member at the other end; "" when there is no certificate.
func MemberOf(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	return state.PeerCertificates[0].Subject.CommonName
}
