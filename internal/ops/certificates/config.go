// Package certificates owns the certificates of HTTPS and of the Kafka protocol over TLS: the
// configured files, which it reloads when they change, or the server's own authority, which
// issues a certificate for each name. The certificates of members of an ensemble are in
// package ensemble/bundle; ports and TLS handshakes in package listen.
//
// # Locks
//
//	lock       protects
//	Files.mu   the loaded certificate and when its files were checked
//
// The cache of issued certificates has its own lock (base/lru). No two are held at the same
// time.
package certificates

import (
	"crypto/tls"
	"log/slog"
)

// Options are the settings of Open.
type Options struct {
	// CertFile and KeyFile are the configured certificate and its key. Without them the
	// server's own authority issues certificates.
	CertFile, KeyFile string
	// Dir is the folder of the authority.
	Dir string
	// Domain is the domain of the clusters: the authority issues certificates for all names
	// under it.
	Domain string
	// Names are the other names and addresses of the server.
	Names []string
	Log   *slog.Logger
}

// Open returns the configuration of the HTTPS listener: TLS 1.2 and above, with HTTP/2. The
// certificate comes from the configured files, for every name, or from the server's own
// authority; then files is nil.
func Open(opts Options) (_ *tls.Config, files *Files, _ error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if opts.CertFile != "" {
		files, err := openFiles(opts.CertFile, opts.KeyFile, opts.Log)
		if err != nil {
			return nil, nil, err
		}
		out.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return files.get(), nil }
		return out, files, nil
	}
	issuer, err := newAuthority(opts.Dir, opts.Domain, opts.Names, opts.Log)
	if err != nil {
		return nil, nil, err
	}
	out.GetCertificate = issuer.getCertificate
	return out, nil, nil
}
