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
	"freshet/internal/base/retry"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/pipeline"
)

// The mechanisms, in the order in which they are offered.
const (
	mechanismPlain = "PLAIN"
	mechanismOAuth = "OAUTHBEARER"
)

var mechanisms = []string{mechanismPlain, mechanismOAuth}

// session is an authenticated client and the cluster that it uses.
type session struct {
	principal *identity.Principal
	cluster   *Cluster
	namespace names.Namespace // default namespace for topic names
	mechanism string
	anonymous bool // the client sent no credentials
	decisions *decisions
}

// auth is the state of a connection's authentication.
type auth struct {
	mechanism string   // of a handshake that is waiting for credentials
	raw       bool     // credentials arrive without a header, after a handshake of version 0
	session   *session // nil before the first successful authentication
}

// checkAllowed returns an error, which ends the connection, unless the request is allowed in this state.
func (a *auth) checkAllowed(ctx context.Context, c *conn, h *header) error {
	switch h.key {
	case keyAPIVersions, keySASLHandshake:
		return nil
	case keySASLAuthenticate:
		return nil // its response reports a missing handshake
	}
	if err := a.startAnonymous(ctx, c); err != nil {
		c.auditRejected(err.Error())
		return err
	}
	if a.session == nil {
		c.auditRejected("request before authentication")
		return fmt.Errorf("client sends %s before it has authenticated; set security.protocol to SASL_PLAINTEXT or "+
			"SASL_SSL and sasl.mechanism to PLAIN or OAUTHBEARER", c.server.apis[h.key].name)
	}
	if end := a.session.principal.ExpiresAt; !end.IsZero() && time.Now().After(end) {
		return errors.New("session has expired; the client must re-authenticate in time")
	}
	if !a.session.principal.Live() {
		return errRevoked
	}
	if !c.server.opts.Clusters.Serves(a.session.cluster) {
		return errors.New("cluster no longer serves the Kafka protocol")
	}
	return nil
}

// startAnonymous starts the session of a client without credentials as the account that the
// listener has for such clients, if it has one and the client is on this machine. It starts a new session
// when the old one has expired.
func (a *auth) startAnonymous(ctx context.Context, c *conn) error {
	if c.listener.Anonymous == nil || !isLoopback(c.address) {
		return nil
	}
	if a.session != nil {
		end := a.session.principal.ExpiresAt
		if !a.session.anonymous || end.IsZero() || time.Now().Before(end) {
			return nil
		}
	}
	cluster, err := c.server.opts.Clusters.Default()
	if err != nil {
		return err
	}
	token, err := c.listener.Anonymous.Token(cluster)
	if err != nil {
		return fmt.Errorf("starting an anonymous session: %w", err)
	}
	next, err := c.newSession(ctx, credentials{token: token})
	if err != nil {
		return err
	}
	next.anonymous = true
	c.listener.Anonymous.warnAdministrator(c.server.opts.Logger)
	a.accept(c, next)
	return nil
}

func isLoopback(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsLoopback()
}

func beginSASLHandshake(_ context.Context, c *call) pendingResponse {
	request, _ := c.request.(*kmsg.SASLHandshakeRequest)
	response, _ := request.ResponseKind().(*kmsg.SASLHandshakeResponse)
	response.SupportedMechanisms = mechanisms
	a := whenDue(func(context.Context) (encodable, error) { return response, nil })
	if !slices.Contains(mechanisms, request.Mechanism) {
		response.ErrorCode = codeMechanism
		a.closeAfter = true
		return a
	}
	c.conn.auth.mechanism = request.Mechanism
	c.conn.auth.raw = c.version == 0
	return a
}

func beginSASLAuthenticate(ctx context.Context, c *call) pendingResponse {
	request, _ := c.request.(*kmsg.SASLAuthenticateRequest)
	response, _ := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	auth := &c.conn.auth
	if auth.mechanism == "" {
		response.ErrorCode, response.ErrorMessage = codeSASLState, text("SaslHandshake must come first")
		return pendingResponse{
			build:      func(context.Context) (encodable, error) { return response, nil },
			closeAfter: true,
		}
	}
	next, err := auth.verify(ctx, c.conn, request.SASLAuthBytes)
	auth.mechanism = ""
	if isTemporary(err) {
		return pendingResponse{build: func(context.Context) (encodable, error) { return nil, err }, closeAfter: true}
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = codeAuthentication, text(err.Error())
		return pendingResponse{build: func(ctx context.Context) (encodable, error) {
			delayFailure(ctx)
			return response, nil
		}, closeAfter: true}
	}
	auth.accept(c.conn, next)
	if end := next.principal.ExpiresAt; !end.IsZero() {
		response.SessionLifetimeMillis = max(time.Until(end).Milliseconds(), 1)
	}
	return whenDue(func(context.Context) (encodable, error) { return response, nil })
}

// handleRaw handles credentials that arrive without a header.
func (a *auth) handleRaw(ctx context.Context, c *conn, frame []byte) (pendingResponse, error) {
	next, err := a.verify(ctx, c, frame)
	a.mechanism, a.raw = "", false
	if err != nil {
		if !isTemporary(err) {
			delayFailure(ctx)
		}
		return pendingResponse{}, err
	}
	a.accept(c, next)
	return pendingResponse{raw: func() []byte { return []byte{} }}, nil
}

// accept makes next the session of the connection.
func (a *auth) accept(c *conn, next *session) {
	if a.session == nil {
		c.server.markAuthenticated(c)
		c.in = bufio.NewReaderSize(c.in, readBufferSize) // keeps the bytes that are already buffered
	}
	a.session = next
}

// delayFailure delays the response to wrong credentials, which slows down guessing.
func delayFailure(ctx context.Context) {
	_ = retry.Sleep(ctx, authFailureDelay)
}

// verify turns credentials into a session. Clients see its errors.
func (a *auth) verify(ctx context.Context, c *conn, data []byte) (*session, error) {
	given, err := parseCredentials(a.mechanism, data)
	if err != nil {
		c.auditRejected(err.Error())
		return nil, err
	}
	next, err := c.newSession(ctx, given)
	if err == nil {
		next.mechanism = a.mechanism
		if a.session != nil && !a.session.anonymous {
			err = a.session.checkSameIdentity(next)
		}
	}
	if err != nil && !isTemporary(err) {
		c.auditRejected(err.Error())
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// temporaryError is the reason why credentials cannot be checked, or their cluster not be used, at the
// moment. Clients give up after SASL_AUTHENTICATION_FAILED, so such an error ends the connection
// without a response, and clients connect again. The error appears in the log only.
type temporaryError struct{ error }

// Unwrap returns the cause.
func (t temporaryError) Unwrap() error { return t.error }

func isTemporary(err error) bool {
	var temporary temporaryError
	return errors.As(err, &temporary)
}

// checkSameIdentity returns an error unless re-authentication keeps account, cluster, namespace and mechanism.
func (s *session) checkSameIdentity(next *session) error {
	if s.mechanism != next.mechanism {
		return errors.New("re-authentication must use the same mechanism; open another connection for another one")
	}
	if s.principal.Name != next.principal.Name || s.cluster.UID != next.cluster.UID || s.namespace != next.namespace {
		return errors.New("re-authentication must be for the same account, cluster and namespace; open another " +
			"connection for others")
	}
	return nil
}

// newSession authenticates credentials and returns their session.
func (c *conn) newSession(ctx context.Context, given credentials) (*session, error) {
	cluster, err := c.cluster(given)
	if err != nil {
		disclosed := pipeline.Disclose(ctx, c.server.opts.Authenticator, given.token, err)
		if !errors.Is(disclosed, err) {
			return nil, publicAuthError(disclosed)
		}
		if errs.KindOf(err) == errs.Unavailable && engine.PublicError(err) == nil {
			err = temporaryError{err}
		}
		return nil, err
	}
	principal, err := c.server.opts.Authenticator.Authenticate(ctx, given.token, cluster.Audiences...)
	if err != nil {
		return nil, publicAuthError(err)
	}
	ns := names.Namespace{Tenant: "public", Name: "default"}
	if given.namespace != (names.Namespace{}) {
		ns = given.namespace
		exists, err := cluster.Namespaces.HasNamespace(ctx, ns)
		if err != nil {
			return nil, temporaryError{fmt.Errorf("looking up the namespace of a client: %w", err)}
		}
		if err := c.checkNamespace(principal, cluster, ns, exists); err != nil {
			return nil, err
		}
	}
	return &session{principal: principal, cluster: cluster, namespace: ns, decisions: &decisions{}}, nil
}

// checkNamespace returns an error unless the default namespace of a connection exists. A caller without any permission
// in the namespace gets the same error whether it exists or not. Everybody may connect to public/default: it always
// exists, and clients use it to address topics elsewhere by their dotted names.
func (c *conn) checkNamespace(principal *identity.Principal, cluster *Cluster, ns names.Namespace, exists bool) error {
	if exists && ns == names.PublicDefault {
		return nil
	}
	scope := cluster.Scope
	scope.Tenant, scope.Namespace = ns.Tenant, ns.Name
	if !slices.ContainsFunc(namespacePermissions, func(p access.Permission) bool {
		filter := c.server.opts.Policy.Filter(principal, p, scope)
		return !filter.None() || access.GrantedWithin(cluster.Grants, principal, p, scope)
	}) {
		return fmt.Errorf("namespace %s does not exist, or the account has no permission in it", ns)
	}
	if !exists {
		return fmt.Errorf("namespace %s does not exist", ns)
	}
	return nil
}

// namespacePermissions are the permissions of which any one, on something in a namespace, allows a caller to find
// out whether the namespace exists.
var namespacePermissions = []access.Permission{
	permitProduce, permitConsume, permitDescribe, permitCreate, permitUpdate, permitDelete, permitSubscriptions,
	permitDeleteSubscription, "messaging.namespaces.describe",
}

// publicAuthError returns the error that a client with rejected credentials sees: the reason. The error
// is temporary if the credentials could not be checked.
func publicAuthError(err error) error {
	if errs.KindOf(err) != errs.Unauthenticated {
		return temporaryError{fmt.Errorf("checking the credentials of a client: %w", err)}
	}
	return err
}

// cluster finds the cluster of a client: by the name of the TLS handshake, by its credentials, or
// else the default cluster.
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
		// A host name that is not a cluster's own resolves to the default cluster.
		if fallback, err := clusters.Default(); err == nil && fallback.UID == byHost.UID {
			return byName, nil
		}
		err := errs.Newf(errs.Invalid, "address %s belongs to another cluster than %s/%s", c.sni, given.organization,
			given.cluster)
		return nil, &pipeline.UndisclosedError{Organization: given.organization, Err: err}
	}
	return byHost, nil
}

// auditRejected records that a client was rejected.
func (c *conn) auditRejected(reason string) {
	c.server.authFailures.Add(1)
	c.server.opts.Auditor.Record(audit.Record{
		Time: time.Now(), Surface: Surface, Verb: "connect", Resource: "stream", Decision: audit.Denied, Status: 401,
		Source: c.socket.RemoteAddr().String(), UserAgent: c.software(), Scope: reason,
	})
}

// auditRecord returns the audit record of a call.
func (c *call) auditRecord(permission access.Permission, scope string) audit.Record {
	rec := audit.Record{
		Time: time.Now(), Surface: Surface, Verb: c.name(), Resource: "stream", Permission: string(permission),
		Organization: c.session.cluster.Organization, Scope: scope,
		Principal: c.session.principal.Name, KeyID: c.session.principal.KeyID,
		Source: c.conn.socket.RemoteAddr().String(), UserAgent: c.conn.software(),
	}
	if parts := strings.Split(string(permission), "."); len(parts) == 3 {
		rec.Resource, rec.Verb = parts[1], parts[2]
	}
	return rec
}

// text returns a pointer to s, the form of nullable strings in the codec.
func text(s string) *string { return &s }
