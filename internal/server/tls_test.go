package server

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func openCerts(t *testing.T, dir string, names ...string) *certificates {
	t.Helper()
	c, err := openCertificates(dir, "", "", names, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSelfMadeCertificateIsTrustedThroughItsAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCerts(t, dir, "localhost", "127.0.0.1", "*.freshet.localhost")
	text, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	for _, name := range []string{"localhost", "127.0.0.1", "default.freshet.localhost"} {
		if _, err := c.get().Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("ca.key has mode %o", mode)
	}
}

func TestCertificateIsKeptUntilItsNamesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := openCerts(t, dir, "localhost").get().Certificate[0]
	if again := openCerts(t, dir, "localhost").get().Certificate[0]; !bytes.Equal(first, again) {
		t.Error("a good certificate was replaced")
	}
	if other := openCerts(t, dir, "localhost", "stream.example").get().Certificate[0]; bytes.Equal(first, other) {
		t.Error("a new name did not get a new certificate")
	}
}

func TestNewCertificateFilesAreTakenUp(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	c := openCerts(t, dir, "localhost")
	old := c.get().Certificate[0]
	openCerts(t, other, "localhost")
	for _, name := range []string{"server.key", "server.crt"} {
		data, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	c.checked = time.Time{} // as if the last look were long ago
	if now := c.get().Certificate[0]; bytes.Equal(now, old) {
		t.Error("the old certificate is still shown")
	}
	if err := os.WriteFile(filepath.Join(dir, "server.crt"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.checked, c.seen = time.Time{}, time.Time{}
	if c.get() == nil {
		t.Error("a broken file took the certificate away")
	}
}
