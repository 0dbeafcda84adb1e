package server

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"freshet/internal/config"
	"freshet/internal/identity"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/etcdstore"
	"freshet/internal/ops/adminsocket"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/signinapi"
)

// signInPrefix returns the key prefix of the sign-in records in etcd.
func signInPrefix(cfg *config.Config) string { return cfg.Etcd.Prefix + "/signin/" }

// refreshGrace is long enough for a program to repeat a refresh whose response was lost.
const refreshGrace = time.Minute

// openSignIn creates the sign-in service. openControllers loads its records, after the users.
func (s *server) openSignIn() error {
	opts := signin.Options{
		Store:     etcdstore.New(s.etcd, signInPrefix(s.cfg), s.identity.sealer, s.log),
		Directory: s.identity.directory, Issuer: s.identity.issuer, Audience: s.identity.addresses[0],
		TokenLifetime: s.cfg.SignIn.TokenLifetime.Std(), SessionLifetime: s.cfg.SignIn.SessionLifetime.Std(),
		DeviceLifetime:    s.cfg.SignIn.DeviceLifetime.Std(),
		RefreshGrace:      refreshGrace,
		AdminOrganization: s.cfg.Admin.Organization, AdminAccount: s.cfg.Admin.ServiceAccount,
		Log: s.log,
	}
	if s.ensemble != nil {
		opts.Replicas = signInReplicas{s}
	}
	if provider := s.cfg.SignIn.OpenID; provider.Issuer != "" {
		var secret []byte
		if provider.ClientSecretFile != "" {
			var err error
			if secret, err = os.ReadFile(provider.ClientSecretFile); err != nil {
				return fmt.Errorf("reading the secret for the OpenID provider: %w", err)
			}
		}
		s.provider = openid.New(openid.Options{
			Issuer: provider.Issuer, ClientID: provider.ClientID,
			ClientSecret: identity.NewSecret(strings.TrimSpace(string(secret))), Domains: provider.Domains,
			RedirectURL: s.cfg.PublicURL() + signinapi.CallbackPath,
		})
		opts.Provider = s.provider
	}
	s.signIn = signin.New(opts)
	s.identity.directory.SetSessionLoader(s.signIn)
	return nil
}

// signInPages returns the surface of the sign-in pages.
func (s *server) signInPages(options pipeline.Options) (*signinapi.API, error) {
	opts := signinapi.Options{
		SignIn: s.signIn, Sealer: s.identity.sealer, Issuer: s.identity.issuer.URL(), Origins: origins(s.cfg),
		Organization: s.cfg.Admin.Organization,
		ProviderName: s.cfg.SignIn.OpenID.Name, Auditor: options.Auditor, Observe: s.signIns.count,
	}
	if s.provider != nil {
		opts.Provider = s.provider
	}
	return signinapi.New(opts)
}

// origins returns the origins at which browsers may use this server: its addresses, and the
// common names of the loopback address. It does not trust the Host header of requests,
// because any DNS name can resolve to this server.
func origins(cfg *config.Config) []string {
	var list []string
	add := func(origin string) {
		if origin = identity.CanonicalURL(origin); !slices.Contains(list, origin) {
			list = append(list, origin)
		}
	}
	for _, address := range addresses(cfg) {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		add(u.Scheme + "://" + u.Host)
		host, port, err := net.SplitHostPort(u.Host)
		if ip := net.ParseIP(host); err == nil &&
			(host == "localhost" || host == "" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())) {
			for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
				add(u.Scheme + "://" + name + ":" + port)
			}
		}
	}
	for _, name := range cfg.TLS.Names {
		if _, port, err := net.SplitHostPort(cfg.HTTPS); err == nil && cfg.HTTPS != config.Off &&
			!strings.Contains(name, "*") {
			add("https://" + net.JoinHostPort(name, port))
		}
	}
	return slices.DeleteFunc(list,
		func(origin string) bool { return !identity.IsBaseURL(origin) || strings.Contains(origin, "://0.0.0.0") })
}

// firstLinkLifetime is the lifetime of the sign-in link of the first start. It is longer than
// that of other links, because a new user may not open it immediately.
const firstLinkLifetime = time.Hour

// adminLink creates a one-time sign-in link for the operator, with an audit record.
func (s *server) adminLink(ctx context.Context, lifetime time.Duration) (link string, ends time.Time, err error) {
	token, ends, err := s.signIn.Links.AdminLink(ctx, lifetime)
	if err != nil {
		return "", time.Time{}, err
	}
	s.Record(audit.Record{
		Time: time.Now(), Surface: "control", Verb: "create", Resource: "links", Decision: audit.Allowed,
		Principal: s.identity.operator.Name, Organization: s.cfg.Admin.Organization,
	})
	return signinapi.LinkURL(s.cfg.PublicURL(), token.Reveal()), ends, nil
}

// serveLink handles freshet admin link.
func (s *server) serveLink(ctx context.Context, caller *adminsocket.Conn) error {
	link, ends, err := s.adminLink(ctx, signin.AdminLinkLifetime)
	if err != nil {
		return err
	}
	return caller.Respond(adminsocket.Response{Link: link, Expires: ends})
}
