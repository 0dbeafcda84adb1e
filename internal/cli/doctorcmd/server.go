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

	"freshet/client"
	"freshet/internal/base/version"
)

// maxAnswer bounds what is read of a server that may not be one of ours.
const maxAnswer = 1 << 20

// Clocks that differ more make tokens invalid before or after their time.
const (
	skewWarn = 5 * time.Second
	skewFail = 30 * time.Second
)

// certificateSoon is when the end of a certificate is worth a word. A server renews
// those of its own authority every day, six before their end.
const certificateSoon = 5 * 24 * time.Hour

// server checks what every client needs of one, whoever it is: an answer, a
// certificate, the time, health. It says whether the server answers at all.
func (d *doctor) server(ctx context.Context) bool {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if d.at.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(d.at.CA)) {
			d.failed("certificate", "the certificate authority to trust is not a certificate",
				"Name a PEM file with --ca-file; a server's own is tls/ca.crt in its data directory.")
			return false
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	asker := &http.Client{Timeout: answerTimeout, Transport: transport}
	before := time.Now()
	answer, body, err := get(ctx, asker, d.at.Server+"/readyz?verbose") //nolint:bodyclose // get closes it
	after := time.Now()
	if err != nil {
		d.unreachable(err)
		return false
	}
	d.good("connection", "%s answers", d.at.Server)
	d.certificate(answer.TLS)
	d.clock(answer.Header.Get("Date"), before, after)
	d.health(answer.StatusCode, body)
	return true
}

func get(ctx context.Context, asker *http.Client, url string) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	answer, err := asker.Do(request)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer, string(body), errors.Join(err, answer.Body.Close())
}

// unreachable says why there is no answer.
func (d *doctor) unreachable(err error) {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		next := "Name the certificate authority of the server with --ca-file (tls/ca.crt in its data directory), or " +
			"sign in again with 'freshet login --ca-file FILE'."
		d.failed("certificate",
			fmt.Sprintf("the certificate of %s is not from the certificate authority that you trust", d.at.Server),
			next)
	case errors.As(err, &host):
		d.failed("certificate", fmt.Sprintf("the certificate of %s is for other names: %v", d.at.Server, host),
			"Use a name that it has, or give the server a certificate with this one (tls.hosts, or tls.certFile).")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		d.failed("certificate", fmt.Sprintf("the certificate of %s is not valid now: %v", d.at.Server, invalid),
			"Renew it (tls.certFile is read again by itself), or set the clock of this machine right.")
	default:
		d.failed("connection", fmt.Sprintf("%s does not answer: %v", d.at.Server, err),
			"Does the server run, and is the address right? 'freshet context show' says where it comes from; look at firewalls and proxies on the way.")
	}
}

func (d *doctor) certificate(state *tls.ConnectionState) {
	if state == nil {
		d.warned("certificate", d.at.Server+" is reached without TLS: tokens cross the network in the clear",
			"Use the https address, unless the server is on this machine.")
		return
	}
	if len(state.PeerCertificates) == 0 {
		return
	}
	leaf := state.PeerCertificates[0]
	until := leaf.NotAfter.UTC().Format("2006-01-02")
	if time.Until(leaf.NotAfter) < certificateSoon {
		d.warned("certificate", "the certificate ends on "+until, "Renew it: tls.certFile is read again by itself.")
		return
	}
	d.good("certificate", "good until %s, from %s", until, leaf.Issuer.CommonName)
}

// clock compares the server's time with ours. It was the time of the header, to the
// second, at some moment between before and after.
func (d *doctor) clock(date string, before, after time.Time) {
	moment, err := http.ParseTime(date)
	if err != nil {
		d.warned("clock", "the server does not say what time it has",
			"Look for a proxy on the way that takes the header Date away.")
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
	const next = "Set both by NTP ('timedatectl' shows whether that is on): tokens are refused before or after their time."
	switch {
	case skew >= skewFail:
		d.failed("clock", text, next)
	case skew >= skewWarn:
		d.warned("clock", text, next)
	default:
		d.good("clock", "that of the server")
	}
}

// health reads /readyz?verbose.
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
		d.good("health", "ready, %d checks passed, etcd and the engines of the clusters among them", passed)
	case len(bad) == 0:
		d.failed("health", fmt.Sprintf("the server is not ready: it answers %d", status),
			"Wait until it has started; its log says what it waits for.")
	default:
		d.failed("health", "the server is not ready: "+strings.Join(bad, ", "),
			"Its log says why: etcd is the store of resources, clusters are those of messages; see docs/howto/operate.md and docs/howto/damage.md.")
	}
}

// versions compares ours with the server's, which is behind the version of the
// Kubernetes interface at /version.
func (d *doctor) versions(ctx context.Context, conn *client.Client) {
	own := version.Get().Version
	const next = "Install the same version on both sides, unless an upgrade is under way."
	var shown struct {
		GitVersion string `json:"gitVersion"`
	}
	answer, err := conn.Do(ctx, &client.Request{
		Method: http.MethodGet, Path: "/version", Timeout: answerTimeout,
		MaxResponse: maxAnswer,
	})
	if err == nil {
		err = answer.JSON(&shown)
	}
	_, theirs, found := strings.Cut(shown.GitVersion, "+freshet.")
	switch {
	case err != nil:
		d.warned("version", "the server does not say which version it is: "+err.Error(),
			"Look for a proxy on the way that takes only some paths.")
	case !found:
		d.warned("version", fmt.Sprintf("this program is %s, the server an older one, or none of ours", own), next)
	case theirs != own:
		d.warned("version", fmt.Sprintf("this program is %s, the server %s", own, theirs), next)
	default:
		d.good("version", "%s, as the server", own)
	}
}
