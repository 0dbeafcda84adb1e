package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/privatefile"
	"freshet/internal/config"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// identitySet contains the parts of identity and access that the surfaces share.
type identitySet struct {
	sealer    *identity.Sealer
	keys      *identity.Keyring
	issuer    *identity.Issuer
	directory *identity.Directory
	verifier  *identity.Verifier
	policy    *access.Policy

	operator     *identity.Principal // the holder of DIR/admin.token
	operatorHash [sha256.Size]byte
	addresses    []string // of the resource API, its base URL first
	audiences    []string // audiences that the resource API accepts
}

// openIdentities reads or creates the keys, and returns the parts over them.
func openIdentities(ctx context.Context, cfg *config.Config, etcd *clientv3.Client) (*identitySet, error) {
	sealer, err := identity.OpenSealer(cfg.EncryptionKeyFile())
	if err != nil {
		return nil, fmt.Errorf("opening the encryption key: %w", err)
	}
	store := identity.SealedStore(keyStore{etcd, cfg.Etcd.Prefix + "/signing-keys"}, sealer, "signing-keys")
	keys, err := identity.OpenKeyring(ctx, store, cfg.Tokens.KeyRotation.Std())
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

// openOperator reads the operator's token. It works independently of the accounts: a user who
// can read the data directory is the system administrator.
func (p *identitySet) openOperator(cfg *config.Config) error {
	token, err := privatefile.ReadOrCreate(cfg.Path("admin.token"))
	if err != nil {
		return err
	}
	p.operatorHash = sha256.Sum256([]byte(token))
	p.operator = &identity.Principal{
		Name:           p.issuer.PrincipalName(cfg.Admin.Organization, cfg.Admin.ServiceAccount),
		Organization:   cfg.Admin.Organization,
		ServiceAccount: cfg.Admin.ServiceAccount,
		System:         true,
	}
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

// Authenticate implements pipeline.Authenticator. It accepts the operator's token on every
// surface, and other tokens for their audiences.
func (p *identitySet) Authenticate(ctx context.Context, token string,
	audiences ...string,
) (*identity.Principal, error) {
	if hash := sha256.Sum256([]byte(token)); subtle.ConstantTimeCompare(hash[:], p.operatorHash[:]) == 1 {
		return p.operator, nil
	}
	return p.verifier.Authenticate(ctx, token, audiences...)
}

// keyStore implements identity.KeyStore with one value in etcd.
type keyStore struct {
	etcd *clientv3.Client
	key  string
}

// Load implements identity.KeyStore.
func (s keyStore) Load(ctx context.Context) ([]byte, int64, error) {
	res, err := s.etcd.Get(ctx, s.key)
	if err != nil {
		return nil, 0, err
	}
	if len(res.Kvs) == 0 {
		return nil, 0, nil
	}
	return res.Kvs[0].Value, res.Kvs[0].ModRevision, nil
}

// Save implements identity.KeyStore.
func (s keyStore) Save(ctx context.Context, data []byte, revision int64) error {
	res, err := s.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.key), "=", revision)).
		Then(clientv3.OpPut(s.key, string(data))).
		Commit()
	if err != nil {
		return err
	}
	if !res.Succeeded {
		return identity.ErrKeysChanged
	}
	return nil
}
