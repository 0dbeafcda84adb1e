package membership

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/bundle"
)

const (
	dialTimeout      = 2 * time.Second
	pingInterval     = 2 * time.Second
	pingTimeout      = 2 * time.Second
	idleTimeout      = 5 * time.Minute
	maxResponseBytes = 1 << 20
	protocolHTTP     = "h2"
)

// Network calls other members at their internal addresses with mutual TLS: over HTTP/2, and
// over HTTP/1.1 for small forwarded requests. Pings detect a dead connection within seconds.
type Network struct {
	clients   map[string]*http.Client
	pools     map[string]*pool
	addresses map[string]string
}

// NewNetwork prepares clients for members, by name and internal address. It opens no
// connection.
func NewNetwork(credentials *bundle.Credentials, addresses map[string]string) *Network {
	n := &Network{clients: map[string]*http.Client{}, pools: map[string]*pool{}, addresses: addresses}
	for name, address := range addresses {
		transport := &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     credentials.ClientTLS(name, protocolHTTP),
			TLSHandshakeTimeout: dialTimeout,
			IdleConnTimeout:     idleTimeout,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingTimeout},
		}
		n.clients[name] = &http.Client{Transport: transport}
		n.pools[name] = newPool(credentials, name, address, n.clients[name])
	}
	return n
}

// ServerTLS returns the TLS configuration of the listener that Network calls.
func ServerTLS(credentials *bundle.Credentials, names []string) *tls.Config {
	return credentials.ServerTLS(names, protocolHTTP, protocolPooled)
}

// Client returns the HTTP/2 client for a member, and false for a member that is not in the
// list. URL returns the address of a path.
func (n *Network) Client(member string) (*http.Client, bool) {
	client, ok := n.clients[member]
	return client, ok
}

// Pool returns a transport for requests to a member that have no body, or a small one that
// can be read again (GetBody). It uses less processor time than Client. The second result is
// false for a member that is not in the list.
func (n *Network) Pool(member string) (http.RoundTripper, bool) {
	p, ok := n.pools[member]
	return p, ok
}

// URL returns the URL of a path on a member.
func (n *Network) URL(member, path string) string {
	return "https://" + n.addresses[member] + path
}

// Post sends a member a JSON request and decodes the response into out, unless out is nil.
// A status other than 200 becomes an error with the text of the response.
func (n *Network) Post(ctx context.Context, member, path string, in, out any) error {
	client, ok := n.Client(member)
	if !ok {
		return errs.Newf(errs.NotFound, "member %q is not in members.list", member)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL(member, path), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("calling member %q: %w", member, err)
	}
	defer func() { _ = response.Body.Close() }() // the body was read, or is not needed
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return fmt.Errorf("calling member %q: %w", member, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("calling member %q: %s: %s", member, response.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// Close closes idle connections.
func (n *Network) Close() {
	for name, client := range n.clients {
		n.pools[name].close()
		client.CloseIdleConnections()
	}
}
