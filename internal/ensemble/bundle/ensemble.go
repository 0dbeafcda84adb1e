// Package bundle creates the credentials of an ensemble: one certificate authority for all
// members, a certificate for each member, and the secrets that all members share. Each
// member gets its part in one file, its bundle.
//
// The package owns the files of `freshet ensemble init` and `freshet ensemble join` and
// their installation in a data directory (install.go). It does not open listeners or
// connections: etcd, the replicated log and the members' listeners use the TLS
// configurations of certificates.go.
//
// The authority's key stays in the ensemble file, which only the operator has. A member
// does not get the key, so it cannot add members.
package bundle

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
)

// Version is the format version of the files written, and the only one that can be read.
const Version = 1

// EnsembleFile is the name of the ensemble file, from which bundles are created.
const EnsembleFile = "group.json"

// Member is a member and its addresses.
type Member struct {
	Name     string `json:"name"`
	Internal string `json:"internal"`
	Etcd     string `json:"etcd,omitempty"`
	Log      string `json:"log"`
}

// hosts returns the distinct hosts of the member's addresses.
func (m *Member) hosts() []string {
	var hosts []string
	for _, address := range []string{m.Internal, m.Etcd, m.Log} {
		if host, _, err := net.SplitHostPort(address); err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Secrets are the same on every member. Objects in etcd are encrypted with the encryption
// keys, the administrator's token is valid on every member, and clients trust one authority.
type Secrets struct {
	EncryptionKeys []byte `json:"encryptionKeys"` // content of the key file of package identity
	AdminToken     string `json:"adminToken"`
	ClientCA       Pair   `json:"clientCA"` // authority of the certificates for client listeners
}

// Pair is a certificate and its private key in PEM.
type Pair struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// NATS configures the connection to external NATS servers. Paths refer to files on the
// members' machines.
type NATS struct {
	URLs        []string `json:"urls"`
	Credentials string   `json:"credentials,omitempty"`
	CAFile      string   `json:"caFile,omitempty"`
	CertFile    string   `json:"certFile,omitempty"`
	KeyFile     string   `json:"keyFile,omitempty"`
	Monitoring  []string `json:"monitoring,omitempty"`
}

// Ensemble is the content of the ensemble file. Its holder can add members.
type Ensemble struct {
	Version int      `json:"version"`
	ID      string   `json:"id"` // random; distinguishes ensembles with the same member names
	BaseURL string   `json:"baseURL"`
	Members []Member `json:"members"`
	CA      Pair     `json:"ca"` // authority of the member certificates
	Secrets Secrets  `json:"secrets"`
	// NATS is nil when each member runs an embedded NATS server.
	NATS *NATS `json:"nats,omitempty"`
	// Seed names the member that starts with the data of another server; the other members
	// copy it. When it is empty, all members start without data.
	Seed string `json:"seed,omitempty"`
}

// Bundle is one member's part of an ensemble.
type Bundle struct {
	Version    int      `json:"version"`
	EnsembleID string   `json:"group"`
	Self       string   `json:"self"`
	BaseURL    string   `json:"baseURL"`
	Members    []Member `json:"members"`
	// Existing is set when the ensemble already runs and the member replaces a lost one, or
	// gets its data from the seed member.
	Existing bool `json:"existing,omitempty"`
	// Seed is set when the member starts with the data of another server.
	Seed    bool    `json:"seed,omitempty"`
	NATS    *NATS   `json:"nats,omitempty"` // nil when each member runs an embedded server
	CA      string  `json:"ca"`
	Own     Pair    `json:"own"`
	Secrets Secrets `json:"secrets"`
}

// New creates an ensemble. encryptionKeys is the content of a new key file.
func New(baseURL string, members []Member, encryptionKeys []byte) (*Ensemble, error) {
	ca, err := newAuthority("Freshet members")
	if err != nil {
		return nil, err
	}
	clients, err := newAuthority("Freshet CA")
	if err != nil {
		return nil, err
	}
	return &Ensemble{
		Version: Version, ID: hex.EncodeToString(random(8)), BaseURL: baseURL, Members: members, CA: ca,
		Secrets: Secrets{
			EncryptionKeys: encryptionKeys, AdminToken: base64.RawURLEncoding.EncodeToString(random(32)),
			ClientCA: clients,
		},
	}, nil
}

// Bundle creates the bundle of a member with a new certificate.
func (g *Ensemble) Bundle(name string, existing bool) (*Bundle, error) {
	index := slices.IndexFunc(g.Members, func(m Member) bool { return m.Name == name })
	if index < 0 {
		return nil, errs.Newf(errs.NotFound, "member %q is not in the ensemble file", name)
	}
	own, err := g.CA.issue(name, g.Members[index].hosts())
	if err != nil {
		return nil, err
	}
	seed := g.Seed == name && !existing
	return &Bundle{
		Version: Version, EnsembleID: g.ID, Self: name, BaseURL: g.BaseURL, Members: g.Members,
		Existing: existing || g.Seed != "" && !seed, Seed: seed, NATS: g.NATS,
		CA: g.CA.Certificate, Own: own, Secrets: g.Secrets,
	}, nil
}

// maxFileBytes bounds the size of a file to read.
const maxFileBytes = 4 << 20

// ReadEnsemble reads an ensemble file.
func ReadEnsemble(path string) (*Ensemble, error) {
	var g Ensemble
	if err := read(path, &g); err != nil {
		return nil, err
	}
	if g.Version != Version || len(g.Members) == 0 || g.CA.Key == "" {
		return nil, errs.Newf(errs.Invalid,
			"%s is not an ensemble file that this version can read; create one with freshet ensemble init", path)
	}
	return &g, nil
}

// Read reads a bundle.
func Read(path string) (*Bundle, error) {
	var b Bundle
	if err := read(path, &b); err != nil {
		return nil, err
	}
	if b.Version != Version || b.Self == "" || b.Own.Key == "" {
		return nil, errs.Newf(errs.Invalid,
			"%s is not a bundle that this version can read; create bundles with freshet ensemble init", path)
	}
	return &b, nil
}

func read(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return errs.Newf(errs.NotFound, "reading the bundle: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	if len(text) > maxFileBytes {
		return errs.Newf(errs.Invalid, "%s is not a bundle: it has more than %d bytes", path, maxFileBytes)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errs.Newf(errs.Invalid, "%s is not a bundle: %w", path, err)
	}
	return nil
}

// Write writes an ensemble or a bundle to a new file with mode 0600. It fails if the file
// exists.
func Write(path string, of any) error {
	text, err := Encode(of)
	if err != nil {
		return err
	}
	return create(path, text)
}

// Encode returns the content of the file of an ensemble or a bundle.
func Encode(of any) ([]byte, error) {
	text, err := json.MarshalIndent(of, "", "  ")
	return append(text, '\n'), err
}

// create writes a new file with mode 0600. It fails if the file exists.
func create(path string, data []byte) error {
	if err := atomicfile.WriteNewBytes(path, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func random(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the process instead
	return raw
}
