package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/privatefile"
	"freshet/internal/config"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/atrest"
	"freshet/internal/identity/identitymetrics"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/etcdstore"
	"freshet/internal/ops/adminfiles"
	"freshet/internal/ops/adminsocket"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/signinapi"
)

// identitySet contains the parts of identity and access that the surfaces share.
type identitySet struct {
	sealer    *identity.Sealer
	keys      *identity.Keyring
	issuer    *identity.Issuer
	directory *identity.Directory
	verifier  *identity.Verifier
	policy    *access.Policy

	authenticator *identity.Authenticator
	provider      *openid.Provider // nil without an OpenID provider
	signIns       identitymetrics.SignIns
	addresses     []string // of the resource API, its base URL first
	audiences     []string // audiences that the resource API accepts
}

// openIdentities reads or creates the keys, and returns the parts over them.
func openIdentities(ctx context.Context, cfg *config.Config, etcd *clientv3.Client) (*identitySet, error) {
	open, advice := identity.OpenSealer, ""
	if cfg.Members.Enabled() { // another key would not decrypt what the members share
		open = identity.ReadSealer
		advice = "; copy " + cfg.EncryptionKeyFile() + " from another member, or remove it, and start again: this " +
			"member then fetches it from the others"
	}
	sealer, err := open(cfg.EncryptionKeyFile())
	if err != nil {
		return nil, fmt.Errorf("opening the encryption key: %w%s", err, advice)
	}
	store := identity.SealedStore(atrest.KeyStore{Etcd: etcd, Key: signingKeysKey(cfg)}, sealer, "signing-keys")
	keys, err := identity.OpenKeyring(ctx, store, cfg.Tokens.KeyRotation.Std())
	if errors.Is(err, identity.ErrUnsealable) {
		return nil, fmt.Errorf("opening the signing keys with %s: %w%s", cfg.EncryptionKeyFile(), err, advice)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the signing keys: %w", err)
	}
	issuer, err := identity.NewIssuer(cfg.Issuer(), keys)
	if err != nil {
		return nil, fmt.Errorf("creating the issuer: %w", err)
	}
	directory := identity.NewDirectory()
	p := &identitySet{
		sealer: sealer, keys: keys, issuer: issuer, directory: directory,
		verifier:  identity.NewVerifier(issuer, directory, identity.VerifierOptions{}),
		policy:    access.NewPolicy(),
		addresses: addresses(cfg),
	}
	p.audiences = append([]string{identity.AnyOrganization}, p.addresses...)
	return p, p.openOperator(cfg)
}

// openOperator reads the operator's token.
func (p *identitySet) openOperator(cfg *config.Config) error {
	token, err := privatefile.ReadOrCreate(cfg.Path(adminfiles.Token))
	if err != nil {
		return err
	}
	p.authenticator = identity.NewAuthenticator(p.verifier, &identity.Principal{
		Name:           p.issuer.PrincipalName(cfg.Admin.Organization, cfg.Admin.ServiceAccount),
		Organization:   cfg.Admin.Organization,
		ServiceAccount: cfg.Admin.ServiceAccount,
		System:         true,
	}, token)
	return nil
}

// addresses returns the audiences that the resource API accepts: its base URL, the issuer's
// URL, and every address it listens on.
func addresses(cfg *config.Config) []string {
	list := []string{cfg.PublicURL(), cfg.Issuer()}
	if cfg.HTTP != config.Off {
		list = append(list, "http://"+cfg.HTTP)
	}
	if cfg.HTTPS != config.Off {
		list = append(list, "https://"+cfg.HTTPS)
	}
	for _, url := range list {
		list = append(list, identity.CanonicalURL(url))
	}
	return list
}

func (s *server) openIdentity(ctx context.Context) (err error) {
	if s.identity, err = openIdentities(ctx, s.cfg, s.etcd); err != nil {
		return err
	}
	s.identity.directory.SetCurrentCheck(s.servers.Alive)
	s.identity.issuer.SetClock(s.servers.Now)
	if err := s.withdrawer().Withdraw(ctx); err != nil {
		return fmt.Errorf("withdrawing signing keys: %w", err)
	}
	return s.openSignIn()
}

// signingKeysKey returns the key of the signing keys in etcd.
func signingKeysKey(cfg *config.Config) string { return cfg.Etcd.Prefix + "/signing-keys" }

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
		Replicas: replicas{s}, Log: s.log,
	}
	if provider := s.cfg.SignIn.OpenID; provider.Issuer != "" {
		var secret []byte
		if provider.ClientSecretFile != "" {
			var err error
			if secret, err = os.ReadFile(provider.ClientSecretFile); err != nil {
				return fmt.Errorf("reading the secret for the OpenID provider: %w", err)
			}
		}
		s.identity.provider = openid.New(openid.Options{
			Issuer: provider.Issuer, ClientID: provider.ClientID,
			ClientSecret: identity.NewSecret(strings.TrimSpace(string(secret))), Domains: provider.Domains,
			RedirectURL: s.cfg.PublicURL() + signinapi.CallbackPath,
		})
		opts.Provider = s.identity.provider
	}
	s.signIn = signin.New(opts)
	s.identity.directory.SetSessionLoader(s.signIn.Grants)
	return nil
}

// signInPages returns the surface of the sign-in pages.
func (s *server) signInPages(options pipeline.Options) (*signinapi.API, error) {
	opts := signinapi.Options{
		Subjects: s.signIn.Subjects, People: s.signIn.People, Links: s.signIn.Links, Passwords: s.signIn.Passwords,
		Passkeys: s.signIn.Passkeys, Sessions: s.signIn.Sessions, Codes: s.signIn.Codes, Devices: s.signIn.Devices,
		Sealer: s.identity.sealer, Issuer: s.identity.issuer.URL(),
		Origins:      signinapi.Origins(s.identity.addresses, s.cfg.TLS.Names, s.cfg.HTTPS),
		Organization: s.cfg.Admin.Organization,
		ProviderName: s.cfg.SignIn.OpenID.Name, Auditor: options.Auditor, Counter: &s.identity.signIns,
	}
	if s.identity.provider != nil {
		opts.Provider = s.identity.provider
	}
	return signinapi.New(opts)
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
	s.audit.Record(audit.Record{
		Time: time.Now(), Surface: "control", Verb: "create", Resource: "links", Decision: audit.Allowed,
		Principal: s.identity.authenticator.Operator().Name, Organization: s.cfg.Admin.Organization,
	})
	return signinapi.Links{Base: s.cfg.PublicURL()}.LinkURL(token.Reveal()), ends, nil
}

// serveLink handles freshet admin link.
func (s *server) serveLink(ctx context.Context, caller *adminsocket.Conn) error {
	link, ends, err := s.adminLink(ctx, signin.AdminLinkLifetime)
	if err != nil {
		return err
	}
	return caller.Respond(adminsocket.Response{Link: link, Expires: ends})
}

// resealer returns the part that encrypts stored secrets with the active encryption key.
func (s *server) resealer() *atrest.Resealer {
	return &atrest.Resealer{
		Etcd: s.etcd, Prefixes: []string{s.cfg.Etcd.Prefix + "/resources/", signInPrefix(s.cfg)},
		SigningKeys: signingKeysKey(s.cfg), Sealer: s.identity.sealer, Keys: s.identity.keys,
		KeyFile: s.cfg.EncryptionKeyFile(), Record: s.cfg.Path(atrest.RecordFile), Log: s.log,
	}
}
