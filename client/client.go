package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Defaults of a Config.
const (
	defaultUserAgent = "freshet-client"
	defaultTimeout   = time.Minute
	defaultAttempts  = 5
)

// Config configures a Client. Only BaseURL is required.
type Config struct {
	// BaseURL is the server's URL, such as https://freshet.example.com:8443.
	BaseURL string
	// Organization and Cluster select the cluster for messages and schemas. Both empty
	// select the default cluster at the server's URL. Calls that do not concern a cluster
	// ignore them.
	Organization, Cluster string
	// CA contains PEM certificates of the authorities to trust, instead of those of the
	// system.
	CA []byte
	// TokenSource returns the token of the caller. Without one, calls have no token.
	TokenSource TokenSource
	// UserAgent identifies the program in the server's logs; freshet-client when empty.
	UserAgent string

	// Timeout is the timeout of each attempt of a call that is not a stream; one minute when
	// zero. The context limits the total time of all attempts.
	Timeout time.Duration
	// MaxAttempts is the maximum number of attempts, including the first; 5 when zero. 1
	// disables retries.
	MaxAttempts int
	// Transport replaces the default transport, for tests and tracing. CA must be empty
	// then.
	Transport http.RoundTripper
}

// Client makes calls to one server. It is safe for concurrent use and starts no goroutines.
type Client struct {
	base     *url.URL
	prefix   string // path prefix of the cluster, "" for the default cluster
	tokens   TokenSource
	agent    string
	timeout  time.Duration
	attempts int
	http     *http.Client
}

// New returns a Client. It makes no call, so it succeeds if the server is not reachable.
func New(config Config) (*Client, error) {
	base, err := parseBase(config.BaseURL)
	if err != nil {
		return nil, err
	}
	if (config.Organization == "") != (config.Cluster == "") {
		return nil, errors.New("cluster needs a name and an organization; set both, or neither for the default cluster")
	}
	c := &Client{
		base: base, tokens: config.TokenSource, agent: cmp.Or(config.UserAgent, defaultUserAgent),
		timeout: config.Timeout, attempts: config.MaxAttempts,
	}
	if config.Cluster != "" {
		c.prefix = "/clusters/" + url.PathEscape(config.Organization) + "/" + url.PathEscape(config.Cluster)
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.attempts <= 0 {
		c.attempts = defaultAttempts
	}
	transport := config.Transport
	if transport == nil {
		if transport, err = newTransport(config.CA); err != nil {
			return nil, err
		}
	} else if len(config.CA) > 0 {
		return nil, errors.New("configuration has both Transport and CA; configure the certificates in the transport")
	}
	c.http = newHTTP(transport)
	return c, nil
}

// BaseURL returns the server's URL without a trailing slash.
func (c *Client) BaseURL() string { return c.base.String() }

// ClusterPath returns the path for the Client's cluster: path under
// /clusters/ORGANIZATION/CLUSTER, or unchanged for the default cluster. path starts with a
// slash.
func (c *Client) ClusterPath(path string) string { return c.prefix + path }

// Close closes idle connections. Running calls continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the server URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("server URL %q is not an http or https URL, such as http://127.0.0.1:8080", text)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("server URL has a user, a query or a fragment; remove them, and pass a token with a " +
			"TokenSource")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = ""
	return base, nil
}

func newTransport(ca []byte) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("CA contains no valid PEM certificate")
		}
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}, nil
}

// newHTTP returns an HTTP client that does not follow redirects. The server sends none, and a
// redirect could send the token to another server.
func newHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
