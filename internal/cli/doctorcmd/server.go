package doctorcmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/version"
)

// maxResponse limits a response in bytes, because the server may not be a Freshet server.
const maxResponse = 1 << 20

// Clock differences above which doctor warns and fails. With a larger difference, tokens
// become invalid too early or too late.
const (
	skewWarn = 5 * time.Second
	skewFail = 30 * time.Second
)

// certificateExpiryWarning is the remaining lifetime below which doctor warns about a certificate.
// It is below six days, because a server's own authority issues certificates for seven days
// and renews them every day.
const certificateExpiryWarning = 5 * 24 * time.Hour

// server checks what every client needs: a response, a certificate, the clock, and health.
// It reports whether the server responds.
func (d *doctor) server(ctx context.Context) bool {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if d.at.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(d.at.CA)) {
			d.failed("certificate", "the certificate authority to trust is not a certificate",
				"Set a PEM file with --ca-file; a server's own is tls/ca.crt in its data directory.")
			return false
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	httpClient := &http.Client{Timeout: requestTimeout, Transport: transport}
	before := time.Now()
	response, body, err := get(ctx, httpClient, d.at.Server+"/readyz?verbose") //nolint:bodyclose // get closes it
	after := time.Now()
	if err != nil {
		d.unreachable(err)
		return false
	}
	d.good("connection", "%s responds", d.at.Server)
	d.certificate(response.TLS)
	d.clock(response.Header.Get("Date"), before, after)
	d.health(response.StatusCode, body)
	return true
}

func get(ctx context.Context, httpClient *http.Client, url string) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	return response, string(body), errors.Join(err, response.Body.Close())
}

// unreachable reports why the server does not respond.
func (d *doctor) unreachable(err error) {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		next := "Set the certificate authority of the server with --ca-file (tls/ca.crt in its data directory), or " +
			"sign in again with 'freshet login --ca-file FILE'."
		d.failed("certificate",
			fmt.Sprintf("the certificate of %s is not from the certificate authority that you trust", d.at.Server),
			next)
	case errors.As(err, &host):
		d.failed("certificate", fmt.Sprintf("the certificate of %s is for other names: %v", d.at.Server, host),
			"Use one of these names, or add this name to the server's certificate (tls.hosts, or tls.certFile).")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		d.failed("certificate", fmt.Sprintf("the certificate of %s is not valid now: %v", d.at.Server, invalid),
			"Renew it (the server reloads tls.certFile automatically), or correct the clock of this machine.")
	default:
		d.failed("connection", fmt.Sprintf("%s does not respond: %v", d.at.Server, err),
			"Check that the server runs and that the address is correct ('freshet context show'), and check firewalls "+
				"and proxies.")
	}
}

func (d *doctor) certificate(state *tls.ConnectionState) {
	if state == nil {
		d.warned("certificate", d.at.Server+" is used without TLS: tokens are sent unencrypted",
			"Use the https address, unless the server is on this machine.")
		return
	}
	if len(state.PeerCertificates) == 0 {
		return
	}
	leaf := state.PeerCertificates[0]
	until := leaf.NotAfter.UTC().Format("2006-01-02")
	if time.Until(leaf.NotAfter) < certificateExpiryWarning {
		d.warned("certificate", "the certificate expires on "+until,
			"Renew it; the server reloads tls.certFile automatically.")
		return
	}
	d.good("certificate", "valid until %s, from %s", until, leaf.Issuer.CommonName)
}

// clock compares the server's clock with that of this machine. The Date header has a
// resolution of one second, and the server set it between before and after.
func (d *doctor) clock(date string, before, after time.Time) {
	moment, err := http.ParseTime(date)
	if err != nil {
		d.warned("clock", "the response has no valid Date header", "Check for a proxy that removes the header.")
		return
	}
	var skew time.Duration
	switch latest := moment.Add(time.Second); {
	case before.After(latest):
		skew = before.Sub(latest)
	case moment.After(after):
		skew = moment.Sub(after)
	}
	text := fmt.Sprintf("the clocks of this machine and of the server differ by %s", skew.Round(time.Second))
	const next = "Set both by NTP ('timedatectl' shows whether it is on): tokens become invalid too early or too late."
	switch {
	case skew >= skewFail:
		d.failed("clock", text, next)
	case skew >= skewWarn:
		d.warned("clock", text, next)
	default:
		d.good("clock", "agrees with the server's")
	}
}

// health evaluates the response of /readyz?verbose.
func (d *doctor) health(status int, body string) {
	var bad []string
	passed := 0
	for line := range strings.Lines(body) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "[+]"):
			passed++
		case strings.HasPrefix(line, "[-]"):
			bad = append(bad, strings.TrimPrefix(line, "[-]"))
		}
	}
	switch {
	case status == http.StatusOK:
		d.good("health", "ready, %d checks passed, including etcd and the engines of the clusters", passed)
	case len(bad) == 0:
		d.failed("health", fmt.Sprintf("the server is not ready: it returns %d", status),
			"Wait until it has started; its log shows what it waits for.")
	default:
		d.failed("health", "the server is not ready: "+strings.Join(bad, ", "),
			"See its log for the cause: etcd stores resources, clusters store messages; see docs/howto/operate.md and "+
				"docs/howto/damage.md.")
	}
}

// versions compares the version of this program with the server's, which follows
// "+freshet." in the Kubernetes version at /version.
func (d *doctor) versions(ctx context.Context, conn *client.Client) {
	own := version.Get().Version
	const next = "Install the same version for both, unless an upgrade is in progress."
	var shown struct {
		GitVersion string `json:"gitVersion"`
	}
	response, err := conn.Do(ctx, &client.Request{
		Method: http.MethodGet, Path: "/version", Timeout: requestTimeout,
		MaxResponse: maxResponse,
	})
	if err == nil {
		err = response.JSON(&shown)
	}
	_, theirs, found := strings.Cut(shown.GitVersion, "+freshet.")
	switch {
	case err != nil:
		d.warned("version", "the server does not return its version: "+err.Error(),
			"Check for a proxy that forwards only some paths.")
	case !found:
		d.warned("version", fmt.Sprintf("this program is %s, the server is older or not a Freshet server", own), next)
	case theirs != own:
		d.warned("version", fmt.Sprintf("this program is %s, the server %s", own, theirs), next)
	default:
		d.good("version", "%s, the same as the server", own)
	}
}
