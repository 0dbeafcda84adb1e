// Package bundle makes what the members of a group need to trust each other: one
// authority for all of them, a certificate for each, and the secrets that all must
// share. A member gets its part in one file, its bundle.
//
// It owns the files of `freshet cluster init` and `freshet cluster join` and how
// they are unpacked into a data directory (install.go). It knows nothing of etcd,
// of the log of messages or of listeners; they are given certificates made here
// (certificates.go).
//
// The key of the authority stays in the group's file, with whoever runs the group:
// a member cannot make another member.
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

	"freshet/internal/base/errs"
)

// Version of the files that are written; this is also the latest that is read.
const Version = 1

// GroupFile is the name of the file that bundles are made from.
const GroupFile = "group.json"

// Member is a member and where the others reach it.
type Member struct {
	Name     string `json:"name"`
	Internal string `json:"internal"`
	Etcd     string `json:"etcd,omitempty"`
	Log      string `json:"log"`
}

// hosts are the hosts of its addresses, each once.
func (m *Member) hosts() []string {
	var hosts []string
	for _, address := range []string{m.Internal, m.Etcd, m.Log} {
		if host, _, err := net.SplitHostPort(address); err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Secrets are what must be the same on every member: what is stored in etcd is
// sealed with the encryption keys, the administrator's token is good on every
// member, and clients trust one authority.
type Secrets struct {
	EncryptionKeys []byte `json:"encryptionKeys"` // the file, as identity writes it
	AdminToken     string `json:"adminToken"`
	ClientCA       Pair   `json:"clientCA"` // of the certificates that clients see
}

// Pair is a certificate and its key, in PEM.
type Pair struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// NATS says how the members reach NATS servers that others run; paths are those of files
// on the members' machines.
type NATS struct {
	URLs        []string `json:"urls"`
	Credentials string   `json:"credentials,omitempty"`
	CAFile      string   `json:"caFile,omitempty"`
	CertFile    string   `json:"certFile,omitempty"`
	KeyFile     string   `json:"keyFile,omitempty"`
	Monitoring  []string `json:"monitoring,omitempty"`
}

// Group is everything: what bundles are made from. Whoever has it can make members.
type Group struct {
	Version int      `json:"version"`
	ID      string   `json:"id"` // tells groups apart that were made with the same names
	BaseURL string   `json:"baseURL"`
	Members []Member `json:"members"`
	CA      Pair     `json:"ca"` // of the members
	Secrets Secrets  `json:"secrets"`
	// NATS is nil when a server runs in each member.
	NATS *NATS `json:"nats,omitempty"`
	// Seed names the member that begins with the data of another server; the others
	// get theirs from it. Empty: they all begin with nothing.
	Seed string `json:"seed,omitempty"`
}

// Bundle is the part of one member.
type Bundle struct {
	Version int      `json:"version"`
	Group   string   `json:"group"`
	Self    string   `json:"self"`
	BaseURL string   `json:"baseURL"`
	Members []Member `json:"members"`
	// Existing says that the group runs already, and the member takes the place of
	// one that is lost.
	Existing bool `json:"existing,omitempty"`
	// Seed says that the member begins with the data of another server.
	Seed    bool    `json:"seed,omitempty"`
	NATS    *NATS   `json:"nats,omitempty"` // nil when a server runs in each member
	CA      string  `json:"ca"`
	Own     Pair    `json:"own"`
	Secrets Secrets `json:"secrets"`
}

// New makes a group. encryptionKeys is a new key file.
func New(baseURL string, members []Member, encryptionKeys []byte) (*Group, error) {
	ca, err := newAuthority("Freshet members")
	if err != nil {
		return nil, err
	}
	clients, err := newAuthority("Freshet CA")
	if err != nil {
		return nil, err
	}
	return &Group{
		Version: Version, ID: hex.EncodeToString(random(8)), BaseURL: baseURL, Members: members, CA: ca,
		Secrets: Secrets{
			EncryptionKeys: encryptionKeys, AdminToken: base64.RawURLEncoding.EncodeToString(random(32)),
			ClientCA: clients,
		},
	}, nil
}

// Bundle makes the part of a member, with a new certificate.
func (g *Group) Bundle(name string, existing bool) (*Bundle, error) {
	place := slices.IndexFunc(g.Members, func(m Member) bool { return m.Name == name })
	if place < 0 {
		return nil, errs.Newf(errs.NotFound, "there is no member %q in the group", name)
	}
	own, err := g.CA.issue(name, g.Members[place].hosts())
	if err != nil {
		return nil, err
	}
	seed := g.Seed == name && !existing
	return &Bundle{
		Version: Version, Group: g.ID, Self: name, BaseURL: g.BaseURL, Members: g.Members,
		Existing: existing || g.Seed != "" && !seed, Seed: seed, NATS: g.NATS,
		CA: g.CA.Certificate, Own: own, Secrets: g.Secrets,
	}, nil
}

// maxFile bounds what is read.
const maxFile = 4 << 20

// ReadGroup reads the file of a group.
func ReadGroup(path string) (*Group, error) {
	var g Group
	if err := read(path, &g); err != nil {
		return nil, err
	}
	if g.Version != Version || len(g.Members) == 0 || g.CA.Key == "" {
		return nil, errs.Newf(errs.Invalid,
			"%s is not the file of a group that this version reads; it is made by freshet cluster init", path)
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
			"%s is not a bundle that this version reads; bundles are made by freshet cluster init", path)
	}
	return &b, nil
}

func read(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return errs.Newf(errs.NotFound, "reading the bundle: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	if len(text) > maxFile {
		return errs.Newf(errs.Invalid, "%s is not a bundle: it has more than %d bytes", path, maxFile)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errs.Newf(errs.Invalid, "%s is not a bundle: %w", path, err)
	}
	return nil
}

// Write writes a group or a bundle for its owner alone. It replaces nothing.
func Write(path string, of any) error {
	text, err := json.MarshalIndent(of, "", "  ")
	if err != nil {
		return err
	}
	return create(path, append(text, '\n'))
}

// create makes a file that only its owner can read, and that nobody had before.
func create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func random(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the process instead
	return raw
}
