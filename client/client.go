package client

import (
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

// Config says which server a Client talks to, as whom, and how patiently. Only
// BaseURL is needed.
type Config struct {
	// BaseURL is the server's address, such as https://freshet.example.com:8443.
	BaseURL string
	// Organization and Cluster name the cluster whose messages and schemas are
	// meant. Both empty mean the default cluster, which answers at the server's
	// own address. Calls that do not concern a cluster do not look at them.
	Organization, Cluster string
	// CA are certificates in PEM that the server's must come from, in place of
	// those that the system trusts.
	CA []byte
	// TokenSource says who the caller is. Without one, calls carry no token.
	TokenSource TokenSource
	// UserAgent names the program in the server's logs; freshet-client when empty.
	UserAgent string

	// Timeout bounds each attempt of a call that is not a stream; a minute when
	// zero. The time of all attempts together is for the context to bound.
	Timeout time.Duration
	// MaxAttempts bounds how often a call is sent, the first time included; 5
	// when zero, and 1 repeats nothing.
	MaxAttempts int
	// Transport takes the place of the client's own, for tests and tracing. CA
	// must be empty then.
	Transport http.RoundTripper
}

// Client makes calls to one server. It may be used by any number of goroutines.
// It has no goroutines of its own.
type Client struct {
	base     *url.URL
	prefix   string // of the cluster's path, "" for the default cluster
	tokens   TokenSource
	agent    string
	timeout  time.Duration
	attempts int
	http     *http.Client
}

// New returns a Client. It makes no call: whether the server is there is seen
// with the first one.
func New(config Config) (*Client, error) {
	base, err := parseBase(config.BaseURL)
	if err != nil {
		return nil, err
	}
	if (config.Organization == "") != (config.Cluster == "") {
		return nil, errors.New(
			"a cluster has a name and an organization: give both, or neither for the default cluster")
	}
	c := &Client{
		base: base, tokens: config.TokenSource,
		agent: config.UserAgent, timeout: config.Timeout, attempts: config.MaxAttempts,
	}
	if config.Cluster != "" {
		c.prefix = "/clusters/" + url.PathEscape(config.Organization) + "/" + url.PathEscape(config.Cluster)
	}
	if c.agent == "" {
		c.agent = defaultUserAgent
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
		return nil, errors.New(
			"the configuration has both a transport and certificates: give the certificates to the transport")
	}
	c.http = newHTTP(transport)
	return c, nil
}

// BaseURL is the server's address, without a slash at the end.
func (c *Client) BaseURL() string { return c.base.String() }

// ClusterPath returns path, which begins with a slash, as it is for the cluster
// that the Client was made for: under /clusters/ORGANIZATION/CLUSTER, or as it
// is for the default cluster.
func (c *Client) ClusterPath(path string) string { return c.prefix + path }

// Close closes connections that are not in use. Calls under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the server's address is not a URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the server's address %q is not an http or https URL, such as http://127.0.0.1:8080",
			text)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("the server's address has a user, a query or a fragment: give the bare address, and " +
			"a token by a TokenSource")
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
			return nil, errors.New("the certificates are not in PEM, or none of them can be read")
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

// newHTTP follows no redirect: the server sends none, and a token must not go
// where somebody else points.
func newHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
