package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"freshet/internal/config"
)

const reloadEvery = 10 * time.Second

// tlsConfig returns the configuration of the HTTPS listener: TLS 1.2 and above, with HTTP/2.
// The certificate comes from the configured files, for every name, or from the server's own
// authority; then files is nil.
func tlsConfig(cfg *config.Config, log *slog.Logger) (_ *tls.Config, files *reloadingCertificate, _ error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if cfg.TLS.CertFile != "" {
		files, err := openCertificates(cfg.TLS.CertFile, cfg.TLS.KeyFile, log)
		if err != nil {
			return nil, nil, err
		}
		out.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return files.get(), nil }
		return out, files, nil
	}
	issuer, err := newAuthority(cfg.Path("tls"), cfg.Domain, certificateNames(cfg), log)
	if err != nil {
		return nil, nil, err
	}
	out.GetCertificate = issuer.getCertificate
	return out, nil, nil
}

// certificateNames returns the names of the server, without those of clusters, which are
// under the domain.
func certificateNames(cfg *config.Config) []string {
	names := []string{"localhost", "127.0.0.1", "::1", cfg.Domain}
	if base, err := url.Parse(cfg.PublicURL()); err == nil && base.Hostname() != "" {
		names = append(names, strings.ToLower(base.Hostname()))
	}
	names = append(names, cfg.TLS.Names...)
	slices.Sort(names)
	return slices.Compact(names)
}

// reloadingCertificate returns the configured HTTPS certificate and reloads its files when they
// change.
type reloadingCertificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex // protects the fields below
	current  *tls.Certificate
	modified time.Time // modification time of the loaded files
	checked  time.Time // when the files were last checked for changes
}

func openCertificates(certFile, keyFile string, log *slog.Logger) (*reloadingCertificate, error) {
	c := &reloadingCertificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// get returns the certificate. It checks for newer files every reloadEvery. If these cannot
// be used it logs an error and returns the old certificate.
func (c *reloadingCertificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) > reloadEvery {
		c.checked = time.Now()
		if changed := modified(c.certFile, c.keyFile); changed.After(c.modified) {
			if err := c.loadLocked(); err != nil {
				c.log.Error("new HTTPS certificate cannot be used; continuing with the old one",
					slog.Any("error", err))
			}
		}
	}
	return c.current
}

func (c *reloadingCertificate) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadLocked()
}

func (c *reloadingCertificate) loadLocked() error {
	seen := modified(c.certFile, c.keyFile)
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the HTTPS certificate: %w", err)
	}
	c.current, c.modified, c.checked = &pair, seen, time.Now()
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
