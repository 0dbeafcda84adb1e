// Package backup is the form of a backup: a folder, or a tar stream, with a copy
// of everything that a server has to keep and a manifest with a checksum of every
// file. It writes, checks, lists, removes and unpacks backups.
//
// It knows files and nothing of what is in them: server makes the consistent copy
// that a backup is written from (a staged copy) and puts etcd together when one is
// restored, cli asks for both. A folder under its final name is a whole backup,
// since the name is given last; so is a tar stream with a manifest, which is its
// last file.
package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/errs"
)

// ManifestFile is the name of the manifest in a backup.
const ManifestFile = "backup.json"

const (
	version     = 1
	maxManifest = 256 << 20
	// Whoever can read a backup is the system administrator.
	fileMode, dirMode = 0o600, 0o700
)

// Where etcd ran.
const (
	EtcdEmbedded = "embedded"
	EtcdExternal = "external"
)

// The files of a backup, besides the stores of clusters in ClustersDir.
const (
	EtcdSnapshot      = "etcd.snapshot"
	ClustersDir       = "clusters"
	EncryptionKeyFile = "encryption.key"
	AdminTokenFile    = "admin.token"
	TLSDir            = "tls"
	ConfigurationFile = "configuration.yaml"
)

// Manifest says what a backup holds. A staged copy has one without files.
type Manifest struct {
	Version int `json:"version"`
	// Created is when the backup began: what was acknowledged before is in it.
	Created time.Time `json:"created"`
	Server  string    `json:"server"` // the version of the program
	Etcd    string    `json:"etcd"`
	// EncryptionKeys are the ids of the keys that secrets may be encrypted with,
	// the active one first; HasKeys says that the backup has the keys themselves.
	EncryptionKeys []string  `json:"encryptionKeys"`
	HasKeys        bool      `json:"hasKeys"`
	Clusters       []Cluster `json:"clusters"`
	Files          []File    `json:"files,omitempty"`
	// Checksum is that of the manifest with an empty one.
	Checksum string `json:"checksum,omitempty"`
}

// Cluster is one whose store is in the backup.
type Cluster struct {
	UID          string `json:"uid"`
	Organization string `json:"organization"`
	Name         string `json:"name"`
}

// File is one file of a backup.
type File struct {
	Path     string `json:"path"` // with slashes, beneath the backup
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Modified int64  `json:"modified"` // of the file that was copied, in ns
}

// Size is that of all files together.
func (m *Manifest) Size() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// IsKey says whether a file gives access by itself: those are what a backup
// without keys leaves out.
func IsKey(name string) bool {
	return name == EncryptionKeyFile || name == AdminTokenFile || strings.HasPrefix(name, TLSDir+"/")
}

// immutable says whether a file of this name is written once and never changed:
// the tables of a store. These may be linked.
func immutable(name string) bool {
	return strings.HasPrefix(name, ClustersDir+"/") && (path.Ext(name) == ".sst" || path.Ext(name) == ".blob")
}

// WriteTo writes the manifest into a folder.
func (m *Manifest) WriteTo(dir string) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, ManifestFile), text)
}

func (m *Manifest) encode() ([]byte, error) {
	signed := *m
	var err error
	if signed.Checksum, err = m.checksum(); err != nil {
		return nil, err
	}
	return json.MarshalIndent(&signed, "", " ")
}

func (m *Manifest) checksum() (string, error) {
	plain := *m
	plain.Checksum = ""
	text, err := json.Marshal(&plain)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Read reads the manifest of a folder. A folder without one is no backup.
func Read(dir string) (*Manifest, error) {
	file, err := os.Open(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Newf(errs.NotFound, "%s is not a complete backup: it has no %s", dir, ManifestFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a backup: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	m, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("reading the backup %s: %w", dir, err)
	}
	return m, nil
}

func decode(r io.Reader) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, err
	}
	var m Manifest
	if len(text) > maxManifest || json.Unmarshal(text, &m) != nil {
		return nil, errs.Newf(errs.Invalid, "%s is damaged: it is not the JSON of a manifest", ManifestFile)
	}
	if m.Version != version {
		return nil, errs.Newf(errs.Invalid, "%s has version %d, this program reads version %d: use a newer one",
			ManifestFile, m.Version, version)
	}
	if sum, err := m.checksum(); err != nil || sum != m.Checksum {
		return nil, errs.Newf(errs.Invalid, "%s is damaged: its checksum does not match", ManifestFile)
	}
	for i, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || f.Path == ManifestFile || f.Size < 0 ||
			(i > 0 && m.Files[i-1].Path >= f.Path) {
			return nil, errs.Newf(errs.Invalid, "%s lists a file %q that no backup can have", ManifestFile, f.Path)
		}
	}
	return &m, nil
}

// find is the file of a path; nil when there is none.
func (m *Manifest) find(path string) *File {
	i, ok := slices.BinarySearchFunc(m.Files, path,
		func(f File, path string) int { return strings.Compare(f.Path, path) })
	if !ok {
		return nil
	}
	return &m.Files[i]
}
