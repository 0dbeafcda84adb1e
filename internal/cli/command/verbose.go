package command

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"freshet/internal/cli/output"
)

// transport returns the transport of a client that prints its requests (-v), and the authority
// to pass to the client: nil and ca without -v.
func (e *Env) transport(ca string) (http.RoundTripper, []byte, error) {
	if !e.Flags.Verbose {
		return nil, []byte(ca), nil
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, nil, errors.New("certificate authority to trust contains no valid PEM certificate")
		}
	}
	return &printingTransport{e.Err, &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: secured, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
	}}, nil, nil
}

// printingTransport prints a line about every request: method, address, status, time until the
// response began, and the id in the server's log. It prints no bodies, and hides the credential.
type printingTransport struct {
	w    io.Writer
	next *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *printingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	begin := time.Now()
	response, err := t.next.RoundTrip(request)
	result := "no response"
	if err == nil {
		result = response.Status
		if id := response.Header.Get("X-Request-Id"); id != "" {
			result += ", request id " + output.Clean(id)
		}
	}
	credential := ""
	if scheme, _, ok := strings.Cut(request.Header.Get("Authorization"), " "); ok {
		credential = ", " + scheme + " [hidden]"
	}
	_, _ = fmt.Fprintf(t.w, "%s %s: %s, %s%s\n", request.Method, hideSecrets(request.URL), result,
		time.Since(begin).Round(100*time.Microsecond), credential) // the command does not depend on it
	return response, err
}

// CloseIdleConnections lets a client close its connections.
func (t *printingTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// secretParameters are parts of the names of query parameters whose values are secret.
var secretParameters = []string{"token", "secret", "password", "code", "key"}

// hideSecrets returns an address without the values of secret query parameters.
func hideSecrets(address *url.URL) string {
	shown := *address
	query := shown.Query()
	for name := range query {
		for _, part := range secretParameters {
			if strings.Contains(strings.ToLower(name), part) {
				query.Set(name, "hidden")
			}
		}
	}
	if len(query) > 0 {
		shown.RawQuery = query.Encode()
	}
	return shown.String()
}
