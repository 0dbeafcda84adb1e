package server

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
	"sync"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 397 * 24 * time.Hour
	renewBefore     = 30 * 24 * time.Hour
	reloadEvery     = 10 * time.Second
)

// certificates hands out the HTTPS certificate and takes up new files as they
// are put in place.
type certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    time.Time // of the files
	checked time.Time
}

// openCertificates uses the configured files, or a certificate signed by an
// authority of our own that is made at the first start.
func openCertificates(dir, certFile, keyFile string, names []string, log *slog.Logger) (*certificates, error) {
	if certFile == "" {
		certFile, keyFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
		if err := issueCertificate(dir, certFile, keyFile, names); err != nil {
			return nil, err
		}
	}
	c := &certificates{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// config is for a server: TLS 1.2 and up, HTTP/2 offered.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}
}

// get returns the certificate, looking for newer files now and then. Files that
// cannot be used are reported, and the old certificate goes on.
func (c *certificates) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) > reloadEvery {
		c.checked = time.Now()
		if changed := modified(c.certFile, c.keyFile); changed.After(c.seen) {
			if err := c.loadLocked(); err != nil {
				c.log.Error("the new HTTPS certificate cannot be used, going on with the old one", slog.String("error", err.Error()))
			}
		}
	}
	return c.current
}

func (c *certificates) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadLocked()
}

func (c *certificates) loadLocked() error {
	seen := modified(c.certFile, c.keyFile)
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the HTTPS certificate: %w", err)
	}
	c.current, c.seen, c.checked = &pair, seen, time.Now()
	return nil
}

func modified(paths ...string) time.Time {
	var latest time.Time
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest
}

// issueCertificate makes a certificate for names unless there is a good one.
func issueCertificate(dir, certFile, keyFile string, names []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the TLS directory: %w", err)
	}
	authority, authorityKey, err := openAuthority(dir)
	if err != nil {
		return err
	}
	if goodCertificate(certFile, keyFile, names, authority) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the HTTPS key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(),
		Subject:      pkix.Name{CommonName: names[0]},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(certificateLife),
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
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return fmt.Errorf("signing the HTTPS certificate: %w", err)
	}
	return errors.Join(writeKey(keyFile, key), writePEM(certFile, "CERTIFICATE", der))
}

// goodCertificate says whether the files hold a certificate for all names that
// our authority signed and that lasts for a while.
func goodCertificate(certFile, keyFile string, names []string, authority *x509.Certificate) bool {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil || pair.Leaf == nil || time.Until(pair.Leaf.NotAfter) < renewBefore {
		return false
	}
	if pair.Leaf.CheckSignatureFrom(authority) != nil {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		if ip := net.ParseIP(name); ip != nil {
			return !slices.ContainsFunc(pair.Leaf.IPAddresses, ip.Equal)
		}
		return !slices.Contains(pair.Leaf.DNSNames, name)
	})
}

// openAuthority reads the authority, or makes one at the first start.
func openAuthority(dir string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, nil, fmt.Errorf("%s is not a key that this server made", keyFile)
		}
		return pair.Leaf, key, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serialNumber(),
		Subject:               pkix.Name{CommonName: "Freshet development CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	return cert, key, errors.Join(writeKey(keyFile, key), writePEM(certFile, "CERTIFICATE", der))
}

func serialNumber() *big.Int {
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		panic("crypto/rand failed: " + err.Error()) // it aborts the process itself before this
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
	return writeSecret(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
