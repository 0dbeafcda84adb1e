package certificates

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
	c, err := openFiles(certFile, keyFile, slog.New(slog.DiscardHandler))
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

// TestLoad checks that Load reads the files at once, and keeps the certificate if they are
// broken.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := certificateFiles(t, dir)
	_, c, err := Open(Options{CertFile: certFile, KeyFile: keyFile, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	old := c.get().Certificate[0]
	certificateFiles(t, dir)
	if err := c.Load(); err != nil {
		t.Fatal(err)
	}
	current := c.get().Certificate[0]
	if bytes.Equal(current, old) {
		t.Error("got the old certificate after Load, want the new one")
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(); err == nil {
		t.Error("Load without a key file succeeds, want an error")
	}
	if !bytes.Equal(c.get().Certificate[0], current) {
		t.Error("got another certificate after a failed Load, want the last one")
	}
	if _, _, err := Open(Options{CertFile: certFile, KeyFile: keyFile}); err == nil {
		t.Error("Open without a key file succeeds, want an error")
	}
}
