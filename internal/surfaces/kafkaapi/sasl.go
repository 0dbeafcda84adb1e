package kafkaapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
)

// The mechanisms, in the order in which clients are told of them.
const (
	mechanismPlain = "PLAIN"
	mechanismOAuth = "OAUTHBEARER"
)

var mechanisms = []string{mechanismPlain, mechanismOAuth}

// session is a caller that was recognized, and where.
type session struct {
	who       *identity.Principal
	cluster   *Cluster
	namespace names.Namespace // of topics whose names have no other
	mechanism string
	decided   *decisions
}

// auth is how far the authentication of a connection is.
type auth struct {
	mechanism string   // of a handshake that was not followed by credentials yet
	raw       bool     // credentials come as bare frames, as after a handshake of version 0
	session   *session // nil before the first success
}

// admits says whether a request may come now; an error ends the connection.
func (a *auth) admits(ctx context.Context, c *conn, h *header) error {
	switch h.key {
	case keyAPIVersions, keySASLHandshake:
		return nil
	case keySASLAuthenticate:
		return nil // its own answer says when it came too early
	}
	if a.session == nil && c.listener.Anonymous != nil && isLoopback(c.address) {
		if err := a.admitAnonymous(ctx, c); err != nil {
			c.audit(err.Error())
			return err
		}
	}
	if a.session == nil {
		c.audit("request before authentication")
		return fmt.Errorf("client sends %s before it has authenticated; set security.protocol to SASL_PLAINTEXT or "+
			"SASL_SSL and sasl.mechanism to PLAIN or OAUTHBEARER", c.server.apis[h.key].name)
	}
	if end := a.session.who.ExpiresAt; !end.IsZero() && time.Now().After(end) {
		return errors.New("session is over; the client should have authenticated again")
	}
	if !a.session.who.Live() {
		return errRevoked
	}
	if serves := a.session.cluster.Serves; serves != nil && !serves() {
		return errors.New("cluster no longer has the stream protocol")
	}
	return nil
}

// admitAnonymous begins the session of a client that does not authenticate, as the
// account that the server has for such.
func (a *auth) admitAnonymous(ctx context.Context, c *conn) error {
	cluster, err := c.server.opts.Clusters.Default()
	if err != nil {
		return err
	}
	token, err := c.listener.Anonymous(cluster)
	if err != nil {
		return fmt.Errorf("client without credentials: %w", err)
	}
	a.session, err = c.begin(ctx, credentials{token: token})
	return err
}

func isLoopback(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsLoopback()
}

func takeSASLHandshake(_ context.Context, c *call) answer {
	request, _ := c.request.(*kmsg.SASLHandshakeRequest)
	response, _ := request.ResponseKind().(*kmsg.SASLHandshakeResponse)
	response.SupportedMechanisms = mechanisms
	a := now(func(context.Context) (encodable, error) { return response, nil })
	if !slices.Contains(mechanisms, request.Mechanism) {
		response.ErrorCode = codeMechanism
		a.last = true
		return a
	}
	c.conn.auth.mechanism = request.Mechanism
	c.conn.auth.raw = c.version == 0
	return a
}

func takeSASLAuthenticate(ctx context.Context, c *call) answer {
	request, _ := c.request.(*kmsg.SASLAuthenticateRequest)
	response, _ := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	auth := &c.conn.auth
	if auth.mechanism == "" {
		response.ErrorCode, response.ErrorMessage = codeSASLState, text("SaslHandshake comes first")
		return answer{make: func(context.Context) (encodable, error) { return response, nil }, last: true}
	}
	next, err := auth.verify(ctx, c.conn, request.SASLAuthBytes)
	auth.mechanism = ""
	if err != nil {
		response.ErrorCode, response.ErrorMessage = codeAuthentication, text(err.Error())
		return answer{make: func(ctx context.Context) (encodable, error) {
			pause(ctx)
			return response, nil
		}, last: true}
	}
	auth.accept(c.conn, next)
	if end := next.who.ExpiresAt; !end.IsZero() {
		response.SessionLifetimeMillis = max(time.Until(end).Milliseconds(), 1)
	}
	return now(func(context.Context) (encodable, error) { return response, nil })
}

// takeRaw takes credentials without a header around them.
func (a *auth) takeRaw(ctx context.Context, c *conn, frame []byte) (answer, error) {
	next, err := a.verify(ctx, c, frame)
	a.mechanism, a.raw = "", false
	if err != nil {
		pause(ctx)
		return answer{}, err
	}
	a.accept(c, next)
	return answer{raw: func() []byte { return []byte{} }}, nil
}

// accept goes on in a session.
func (a *auth) accept(c *conn, next *session) {
	if a.session == nil {
		c.server.recognize(c)
		c.in = bufio.NewReaderSize(c.in, buffer) // with what was read already
	}
	a.session = next
}

// pause makes guessing slow.
func pause(ctx context.Context) {
	select {
	case <-time.After(failureDelay):
	case <-ctx.Done():
	}
}

// verify turns credentials into a session. Its errors are what the client sees.
func (a *auth) verify(ctx context.Context, c *conn, data []byte) (*session, error) {
	given, err := parseCredentials(a.mechanism, data)
	if err != nil {
		c.audit(err.Error())
		return nil, err
	}
	next, err := c.begin(ctx, given)
	if err == nil {
		next.mechanism = a.mechanism
		if a.session != nil {
			err = a.session.same(next)
		}
	}
	if err != nil {
		c.audit(err.Error())
		return nil, err
	}
	return next, nil
}

// same says whether a client that authenticates again is who it was.
func (s *session) same(next *session) error {
	if s.mechanism != next.mechanism {
		return errors.New("authenticating again must be with the same mechanism; open another connection for another")
	}
	if s.who.Name != next.who.Name || s.cluster.UID != next.cluster.UID || s.namespace != next.namespace {
		return errors.New("authenticating again must be for the same account, cluster and namespace; open another " +
			"connection for others")
	}
	return nil
}

// begin makes the session of credentials.
func (c *conn) begin(ctx context.Context, given credentials) (*session, error) {
	cluster, err := c.cluster(given)
	if err != nil {
		told := pipeline.Disclose(ctx, c.server.opts.Authenticator, given.token, err)
		if errors.Is(told, err) {
			return nil, err
		}
		return nil, checked(told)
	}
	who, err := c.server.opts.Authenticator.Authenticate(ctx, given.token, cluster.Audiences...)
	if err != nil {
		return nil, checked(err)
	}
	ns := names.Namespace{Tenant: "public", Name: "default"}
	if given.namespace != (names.Namespace{}) {
		ns = given.namespace
		exists, err := cluster.Broker.HasNamespace(ctx, ns)
		if err != nil {
			return nil, errors.New("namespaces cannot be looked up at the moment; try again")
		}
		if !exists {
			return nil, fmt.Errorf("namespace %s does not exist", ns)
		}
	}
	return &session{who: who, cluster: cluster, namespace: ns, decided: &decisions{}}, nil
}

// checked is what a client is told whose credentials are not good: why, unless they
// could not be looked at.
func checked(err error) error {
	if errs.KindOf(err) != errs.Unauthenticated {
		return errors.New("credentials cannot be checked at the moment; try again")
	}
	return err
}

// cluster finds the cluster that a client means: by the name it sent with TLS, by
// what stands in its credentials, else the default one.
func (c *conn) cluster(given credentials) (*Cluster, error) {
	clusters := c.server.opts.Clusters
	named := given.organization != ""
	var byName *Cluster
	if named {
		var err error
		if byName, err = clusters.Named(given.organization, given.cluster); err != nil {
			return nil, err
		}
	}
	if c.sni == "" {
		if named {
			return byName, nil
		}
		return clusters.Default()
	}
	byHost, err := clusters.AtHost(c.sni)
	if err != nil {
		return nil, err
	}
	if named && byHost.UID != byName.UID {
		// A name that is no cluster's own leads to the default cluster.
		if fallback, err := clusters.Default(); err == nil && fallback.UID == byHost.UID {
			return byName, nil
		}
		err := errs.Newf(errs.Invalid, "address %s belongs to another cluster than %s/%s", c.sni, given.organization,
			given.cluster)
		return nil, &pipeline.Undisclosed{Organization: given.organization, Err: err}
	}
	return byHost, nil
}

// audit records that a client was turned away.
func (c *conn) audit(reason string) {
	c.server.refused.Add(1)
	c.server.opts.Auditor.Record(audit.Record{
		Time: time.Now(), Surface: Surface, Verb: "connect", Resource: "stream", Decision: audit.Denied, Status: 401,
		Source: c.socket.RemoteAddr().String(), UserAgent: c.software(), Scope: reason,
	})
}

// auditRecord makes the record of a call.
func (c *call) auditRecord(permission access.Permission, scope string) audit.Record {
	rec := audit.Record{
		Time: time.Now(), Surface: Surface, Verb: c.name(), Resource: "stream", Permission: string(permission),
		Organization: c.session.cluster.Organization, Scope: scope,
		Principal: c.session.who.Name, KeyID: c.session.who.KeyID,
		Source: c.conn.socket.RemoteAddr().String(), UserAgent: c.conn.software(),
	}
	if parts := strings.Split(string(permission), "."); len(parts) == 3 {
		rec.Resource, rec.Verb = parts[1], parts[2]
	}
	return rec
}

// text is a string that may be null on the wire.
func text(s string) *string { return &s }
