package doctorcmd

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
)

// tokenExpiryWarning is the remaining lifetime below which doctor warns about a token.
const tokenExpiryWarning = 7 * 24 * time.Hour

// identity is the caller's identity as the server reports it.
type identity struct {
	Status struct {
		Principal                          string
		Administrator, SystemAdministrator bool
		ExpirationTime                     *time.Time
	}
}

// caller checks the credential and the roles, and reports whether the server accepts the
// credential.
func (d *doctor) caller(ctx context.Context) bool {
	conn, err := d.env.Client()
	if err != nil {
		d.failed("token", err.Error(), "Sign in again with 'freshet login'.")
		return false
	}
	defer conn.Close()
	r := resources.New(conn)
	response, err := r.Post(ctx, resources.Ref{Kind: command.UserReviews}, "", map[string]any{})
	if err != nil {
		return d.tokenRejected(ctx, err)
	}
	var caller identity
	if err := response.Into(&caller); err != nil {
		d.failed("token", "the server's response cannot be decoded: "+err.Error(),
			"Check that it is a Freshet server of a similar version.")
		return false
	}
	end := caller.Status.ExpirationTime
	switch {
	case end == nil:
		d.good("token", "you are %s", caller.Status.Principal)
	case d.at.Credential.TokenFile != "" && time.Until(*end) < tokenExpiryWarning:
		d.warned("token", fmt.Sprintf("you are %s until %s", caller.Status.Principal, end.UTC().Format(time.RFC3339)),
			"A token in a file is not renewed: replace the key with 'freshet apikey rotate', or use a credentials "+
				"file, whose tokens are renewed.")
	default:
		d.good("token", "you are %s, until %s", caller.Status.Principal, end.UTC().Format(time.RFC3339))
	}
	d.versions(ctx, conn)
	d.roles(ctx, r, caller)
	if _, err := r.Kinds(ctx); err != nil {
		d.failed("resources", err.Error(), "See the log of the server.")
	} else {
		d.good("resources", "the resource API responds")
	}
	return true
}

// tokenRejected reports why the server rejects a token. It returns true for an API key of one
// instance, which is valid for messages and schemas but not for the resource API.
func (d *doctor) tokenRejected(ctx context.Context, err error) bool {
	text, account := err.Error(), "its account"
	if !errors.Is(err, client.ErrUnauthenticated) && !errors.Is(err, client.ErrInvalid) {
		d.failed("token", "the server does not return your identity: "+text, "See the log of the server.")
		return false
	}
	claims := d.claims()
	account = cmp.Or(claims.Subject, account)
	switch {
	case strings.Contains(text, "revoked"):
		d.failed("token", fmt.Sprintf("the API key of %s has been revoked", account), "Create another with 'freshet "+
			"apikey create NAME --account ACCOUNT', and sign in with it: 'freshet login --token-file FILE'.")
		return false
	case strings.Contains(text, "expired") || claims.Expires > 0 && time.Unix(claims.Expires, 0).Before(time.Now()):
		at := ""
		if claims.Expires > 0 {
			at = " at " + time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339)
		}
		d.failed("token", fmt.Sprintf("the token of %s has expired%s", account, at),
			"Create another with 'freshet apikey create NAME --account ACCOUNT', or sign in with a credentials file, "+
				"whose tokens are renewed: 'freshet login FILE'.")
		return false
	case (d.at.Credential.TokenFile != "" || d.at.Credential.APIKey() != "") && d.messagesOnly(ctx):
		d.good("token", "an API key for one instance: valid only for messages and schemas")
		return true
	}
	d.failed("token", "the server rejects it: "+text,
		"Sign in again with 'freshet login'; 'freshet context show' shows the credential in use.")
	return false
}

func (d *doctor) messagesOnly(ctx context.Context) bool {
	conn, err := d.env.ClusterClient(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, err = conn.Topics(ctx, "")
	return err == nil || errors.Is(err, client.ErrDenied)
}

// claims are the claims of a token in a file. Its signature is not verified.
type claims struct {
	Subject string `json:"sub"`
	Expires int64  `json:"exp"`
}

func (d *doctor) claims() (c claims) {
	token := d.at.Credential.APIKey()
	if token == "" {
		text, err := os.ReadFile(d.at.Credential.TokenFile)
		if err != nil {
			return c
		}
		token = string(text)
	}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return c
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(body, &c) != nil {
		return claims{}
	}
	return c
}

// roles checks that the caller has permissions for messages and may read the cluster.
func (d *doctor) roles(ctx context.Context, r *resources.Client, caller identity) {
	if caller.Status.SystemAdministrator || caller.Status.Administrator {
		d.good("roles", "administrator")
		return
	}
	const next = "An administrator grants roles: 'freshet grant topic-producer --to ACCOUNT', 'freshet grant " +
		"org-readonly --to ACCOUNT'; 'freshet can-i --list' shows yours."
	review, err := r.Post(ctx, resources.Ref{Kind: command.RulesReviews}, "", map[string]any{
		"apiVersion": command.RulesReviews.APIVersion(), "kind": command.RulesReviews.Kind,
		"spec": map[string]any{"namespace": d.at.Organization},
	})
	var rules struct {
		Status struct {
			Rules []struct{ Permissions []string }
		}
	}
	if err == nil {
		err = review.Into(&rules)
	}
	if err != nil {
		d.failed("roles", "the server does not return your permissions: "+err.Error(), next)
		return
	}
	total, messages := 0, false
	for _, rule := range rules.Status.Rules {
		total += len(rule.Permissions)
		messages = messages ||
			slices.ContainsFunc(rule.Permissions, func(p string) bool { return strings.HasPrefix(p, "messaging.") })
	}
	canReadCluster, err := d.mayGetCluster(ctx, r)
	switch {
	case err != nil:
		d.failed("roles", "the server does not return your permissions: "+err.Error(), next)
	case total == 0 || !messages && !canReadCluster:
		d.failed("roles", fmt.Sprintf("%s has no role in organization %s: all requests are denied",
			caller.Status.Principal, d.at.Organization), next)
	case !messages:
		d.warned("roles", "no role gives access to messages or schemas", next)
	case !canReadCluster && d.at.Instance == "":
		d.warned("roles", fmt.Sprintf("you may not read cluster %s, so commands cannot look up its instance",
			d.at.Cluster), "Set FRESHET_INSTANCE, or ask for the role org-readonly.")
	default:
		d.good("roles", "%d permissions in organization %s", total, d.at.Organization)
	}
}

func (d *doctor) mayGetCluster(ctx context.Context, r *resources.Client) (bool, error) {
	review, err := r.Post(ctx, resources.Ref{Kind: command.AccessReviews}, "", map[string]any{
		"apiVersion": command.AccessReviews.APIVersion(), "kind": command.AccessReviews.Kind,
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": "get", "group": resources.Group, "resource": resources.MessagingClusters.Resource,
			"name": d.at.Cluster, "namespace": d.at.Organization,
		}},
	})
	if err != nil {
		return false, err
	}
	allowed, _ := review.Field("status", "allowed").(bool)
	return allowed, nil
}

// surfaces sends one read request to each of the other APIs. known reports whether the
// server accepts the credential.
func (d *doctor) surfaces(ctx context.Context, authenticated bool) {
	if authenticated {
		d.cluster(ctx)
	}
	conn, err := client.New(client.Config{BaseURL: d.at.Server, CA: []byte(d.at.CA)})
	if err != nil {
		return // the connection checks used the same address and reported the error
	}
	defer conn.Close()
	if _, err := conn.Do(ctx,
		&client.Request{Method: http.MethodGet, Path: "/console/", Timeout: requestTimeout}); err != nil {
		d.failed("console", "the console does not respond: "+err.Error(),
			"Check for a proxy that forwards only some paths.")
	} else {
		d.good("console", "%s/console/", d.at.Server)
	}
	d.kafka(ctx, authenticated)
}

// cluster lists the topics and subjects of the cluster.
func (d *doctor) cluster(ctx context.Context) {
	name := d.at.Organization + "/" + d.at.Cluster
	conn, err := d.env.ClusterClient(ctx)
	if err != nil {
		d.surface("messages", name, err)
		return
	}
	defer conn.Close()
	_, err = conn.Topics(ctx, "")
	d.surface("messages", name, err)
	_, err = schemas.New(conn).Subjects(ctx, false)
	d.surface("schemas", name, err)
}

func (d *doctor) surface(check, cluster string, err error) {
	switch {
	case err == nil:
		d.good(check, "cluster %s responds", cluster)
	case errors.Is(err, client.ErrDenied):
		d.warned(check, fmt.Sprintf("you may not list them in cluster %s", cluster),
			"This can be intended: 'freshet can-i --list' shows your permissions.")
	case errors.Is(err, client.ErrNotFound):
		d.failed(check, fmt.Sprintf("cluster %s does not exist", cluster),
			"'freshet get mc' lists the clusters; choose one with --cluster and -n.")
	case errors.Is(err, client.ErrUnauthenticated):
		d.failed(check, fmt.Sprintf("cluster %s rejects your token: %v", cluster, err),
			"Use a key for its instance, or for the whole organization.")
	default:
		d.failed(check, fmt.Sprintf("cluster %s: %v", cluster, err),
			"'freshet describe mc' shows its conditions; see also the log of the server.")
	}
}

// kafkaPorts are the default ports of the Kafka protocol.
var kafkaPorts = []string{"9093", "9092"}

// kafkaProtocol checks the default ports of the Kafka protocol on another machine.
func (d *doctor) kafkaProtocol(ctx context.Context, host string) {
	for _, port := range kafkaPorts {
		if dial(ctx, net.JoinHostPort(host, port)) == nil {
			d.good("stream", "a program listens at %s", net.JoinHostPort(host, port))
			return
		}
	}
	d.warned("stream",
		fmt.Sprintf("no program listens at %s on the ports %s", host, strings.Join(kafkaPorts, " and ")),
		"This is expected if the Kafka protocol is off or has other ports (stream.plain, stream.tls).")
}
