package server

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificateFiles writes a certificate for given.example and its key.
func certificateFiles(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	a, err := newAuthority(t.TempDir(), "freshet.localhost", []string{"given.example"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.certificateFor("")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "given.crt"), filepath.Join(dir, "given.key")
	if err := writePEM(certFile, "CERTIFICATE", cert.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	if err := writePEM(keyFile, "PRIVATE KEY", der); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

func TestNewCertificateFilesAreLoaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := certificateFiles(t, dir)
	c, err := openCertificates(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	old := c.get().Certificate[0]
	certificateFiles(t, dir)
	later := time.Now().Add(time.Minute)
	for _, path := range []string{certFile, keyFile} {
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	c.checked = time.Time{} // as if the last check were long ago
	if now := c.get().Certificate[0]; bytes.Equal(now, old) {
		t.Error("got the old certificate, want the new one")
	}
	if err := os.WriteFile(certFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.checked, c.modified = time.Time{}, time.Time{}
	if c.get() == nil {
		t.Error("got no certificate after a broken file, want the old one")
	}
}
