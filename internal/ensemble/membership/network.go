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
	dialTimeout  = 2 * time.Second
	pingAfter    = 2 * time.Second
	pingTimeout  = 2 * time.Second
	idleFor      = 5 * time.Minute
	maxAnswer    = 1 << 20
	protocolHTTP = "h2"
)

// Network calls other members at their internal addresses: over HTTP/2, and what is
// sent on in small over HTTP/1.1, each side with its certificate. A connection that has
// gone silent is noticed in seconds.
type Network struct {
	clients   map[string]*http.Client
	pools     map[string]*pool
	addresses map[string]string
}

// NewNetwork prepares the way to members, by name and internal address. Nothing is
// called yet.
func NewNetwork(credentials *bundle.Credentials, addresses map[string]string) *Network {
	n := &Network{clients: map[string]*http.Client{}, pools: map[string]*pool{}, addresses: addresses}
	for name, address := range addresses {
		transport := &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     credentials.Client(name, protocolHTTP),
			TLSHandshakeTimeout: dialTimeout,
			IdleConnTimeout:     idleFor,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		}
		n.clients[name] = &http.Client{Transport: transport}
		n.pools[name] = newPool(credentials, name, address, n.clients[name])
	}
	return n
}

// ServerTLS is for the listener that the network calls.
func ServerTLS(credentials *bundle.Credentials, names []string) *tls.Config {
	return credentials.Server(names, protocolHTTP, protocolPooled)
}

// Client is for calls of a member, URL where a path of it is. There is none of
// members that are not in the list.
func (n *Network) Client(member string) (*http.Client, bool) {
	client, ok := n.clients[member]
	return client, ok
}

// Pool sends a member requests whose body is small and can be had again (GetBody), or
// that have none, for less processor time than Client does. There is none of members
// that are not in the list.
func (n *Network) Pool(member string) (http.RoundTripper, bool) {
	p, ok := n.pools[member]
	return p, ok
}

// URL is where a path of a member is.
func (n *Network) URL(member, path string) string {
	return "https://" + n.addresses[member] + path
}

// Post sends a member something as JSON and reads its answer into out, unless that is
// nil. An answer other than 200 is an error with its text.
func (n *Network) Post(ctx context.Context, member, path string, in, out any) error {
	client, ok := n.Client(member)
	if !ok {
		return errs.Newf(errs.NotFound, "there is no member %q", member)
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
		return fmt.Errorf("calling member %s: %w", member, err)
	}
	defer func() { _ = response.Body.Close() }() // all of it was read, or is not wanted
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("calling member %s: %w", member, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("calling member %s: %s: %s", member, response.Status, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// Close ends connections that nobody uses.
func (n *Network) Close() {
	for name, client := range n.clients {
		n.pools[name].close()
		client.CloseIdleConnections()
	}
}
