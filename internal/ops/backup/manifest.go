// Package backup defines the format of a backup: a directory or a tar stream with a copy
// of all persistent data of a server, and a manifest with a checksum of every file. It
// writes, verifies, lists, removes and extracts backups, and takes them on a schedule.
//
// It does not interpret the files: server/staging creates the consistent copy that a backup
// is written from (a staged copy), server/restore rebuilds etcd; cli requests both. A
// directory under its final name is a complete backup, because it is renamed last. A tar
// stream with a manifest is complete, because the manifest is its last file.
//
// The only lock is the lock file of a Folder (flock): one process at a time writes to a
// directory of backups.
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

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
)

// ManifestFile is the name of the manifest in a backup.
const ManifestFile = "backup.json"

const (
	version     = 1
	maxManifest = 256 << 20
	// A backup contains the system administrator's credentials, so only its owner may read
	// it.
	fileMode, dirMode = 0o600, 0o700
)

// Where etcd ran.
const (
	EtcdEmbedded = "embedded"
	EtcdExternal = "external"
)

// The files of a backup. The stores of clusters are in ClustersDir.
const (
	EtcdSnapshot      = "etcd.snapshot"
	ClustersDir       = "clusters"
	EncryptionKeyFile = "encryption.key"
	AdminTokenFile    = "admin.token"
	TLSDir            = "tls"
	ConfigurationFile = "configuration.yaml"
)

// Manifest describes a backup. The manifest of a staged copy lists no files.
type Manifest struct {
	Version int `json:"version"`
	// Created is when the backup started. The backup has everything that was acknowledged
	// before.
	Created time.Time `json:"created"`
	Server  string    `json:"server"` // version of the program
	Etcd    string    `json:"etcd"`
	// EncryptionKeys are the ids of the keys that secrets may be encrypted with, the active
	// one first. HasKeys means that the backup contains the keys themselves.
	EncryptionKeys []string  `json:"encryptionKeys"`
	HasKeys        bool      `json:"hasKeys"`
	Clusters       []Cluster `json:"clusters"`
	Files          []File    `json:"files,omitempty"`
	// Checksum is the checksum of the manifest with this field empty.
	Checksum string `json:"checksum,omitempty"`
}

// Cluster is a cluster whose store is in the backup.
type Cluster struct {
	UID          string `json:"uid"`
	Organization string `json:"organization"`
	Name         string `json:"name"`
}

// File is one file of a backup.
type File struct {
	Path     string `json:"path"` // relative to the backup, with slashes
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Modified int64  `json:"modified"` // modification time of the original file, in ns
}

// Size returns the size of all files together.
func (m *Manifest) Size() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// IsKey reports whether a file grants access to the server. A backup without keys does
// not contain these files.
func IsKey(name string) bool {
	return name == EncryptionKeyFile || name == AdminTokenFile || strings.HasPrefix(name, TLSDir+"/")
}

// immutable reports whether a file of this name never changes: the tables of a store.
// Such a file may be a hard link.
func immutable(name string) bool {
	return strings.HasPrefix(name, ClustersDir+"/") && (path.Ext(name) == ".sst" || path.Ext(name) == ".blob")
}

// WriteTo writes the manifest to a directory.
func (m *Manifest) WriteTo(dir string) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	return atomicfile.WriteNewBytes(filepath.Join(dir, ManifestFile), text)
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

// Read reads the manifest of a directory. A directory without one is not a backup.
func Read(dir string) (*Manifest, error) {
	file, err := os.Open(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Newf(errs.NotFound, "%s is not a complete backup: it has no %s", dir, ManifestFile)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the manifest of the backup: %w", err)
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
		return nil, errs.Newf(errs.Invalid, "%s has version %d, but this program reads version %d; use a newer program",
			ManifestFile, m.Version, version)
	}
	if sum, err := m.checksum(); err != nil || sum != m.Checksum {
		return nil, errs.Newf(errs.Invalid, "%s is damaged: its checksum does not match", ManifestFile)
	}
	for i, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || f.Path == ManifestFile || f.Size < 0 ||
			(i > 0 && m.Files[i-1].Path >= f.Path) {
			return nil, errs.Newf(errs.Invalid, "%s lists the invalid file %q", ManifestFile, f.Path)
		}
	}
	return &m, nil
}

// find returns the file with a path; nil if there is none.
func (m *Manifest) find(path string) *File {
	i, ok := slices.BinarySearchFunc(m.Files, path,
		func(f File, path string) int { return strings.Compare(f.Path, path) })
	if !ok {
		return nil
	}
	return &m.Files[i]
}
