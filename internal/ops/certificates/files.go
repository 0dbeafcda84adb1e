package certificates

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const reloadEvery = 10 * time.Second

// Files contains the configured HTTPS certificate and reloads its files when they
// change.
type Files struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex // protects the fields below
	current  *tls.Certificate
	modified time.Time // modification time of the loaded files
	checked  time.Time // when the files were last checked for changes
}

func openFiles(certFile, keyFile string, log *slog.Logger) (*Files, error) {
	c := &Files{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.Load()
}

// get returns the certificate. It checks for newer files every reloadEvery. If these cannot
// be used it logs an error and returns the old certificate.
func (c *Files) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) > reloadEvery {
		c.checked = time.Now()
		if changed := latestChange(c.certFile, c.keyFile); changed.After(c.modified) {
			if err := c.loadLocked(); err != nil {
				c.log.Error("new HTTPS certificate cannot be used; continuing with the old one", slog.Any("error", err))
			}
		}
	}
	return c.current
}

// Load reads the files again, whether they have changed or not.
func (c *Files) Load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadLocked()
}

func (c *Files) loadLocked() error {
	seen := latestChange(c.certFile, c.keyFile)
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the HTTPS certificate: %w", err)
	}
	c.current, c.modified, c.checked = &pair, seen, time.Now()
	return nil
}

// latestChange returns the latest modification time of some files.
func latestChange(paths ...string) time.Time {
	var latest time.Time
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest
}
