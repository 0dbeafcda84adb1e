package bundle

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
)

// JoinConfig is the content of join.json, which Install writes for the server next to the
// certificates.
type JoinConfig struct {
	EnsembleID string `json:"group"`
	// Existing is set when the ensemble already runs and the member replaces a lost one, or
	// gets its data from the seed member.
	Existing bool `json:"existing,omitempty"`
	// Seed is set when the member starts with the data of another server.
	Seed bool `json:"seed,omitempty"`
	// Sum is the checksum of the other fields. Earlier versions wrote none.
	Sum string `json:"sum,omitempty"`
}

// sum returns the checksum of the fields.
func (j JoinConfig) sum() string {
	j.Sum = ""
	text, _ := json.Marshal(j) // strings and booleans can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// encode returns the content of join.json.
func (j JoinConfig) encode() ([]byte, error) {
	j.Sum = j.sum()
	text, err := json.Marshal(j)
	return append(text, '\n'), err
}

// Paths are the paths that a bundle is installed to.
type Paths struct {
	DataDir        string
	CertDir        string // directory of the certificates
	EncryptionKeys string // path of the key file
}

// Install writes the bundle's files. It refuses a data directory that another server has used,
// because that data belongs to no member. In the directory of the same member it repairs missing and
// damaged files, and renews the certificate. Installing the same bundle again is a no-op.
func (b *Bundle) Install(to Paths) error {
	config := JoinConfig{EnsembleID: b.EnsembleID, Existing: b.Existing, Seed: b.Seed}
	join, err := config.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(to.CertDir, joinFile)
	if have, err := ReadJoinConfig(to.CertDir); err == nil && have.Sum == "" && have == config {
		// An earlier version has written the same file without the checksum.
		if err := atomicfile.Replace(path, join); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	own := []file{
		{filepath.Join(to.CertDir, caFile), []byte(b.CA)},
		{filepath.Join(to.CertDir, certFile), []byte(b.Own.Certificate)},
		{filepath.Join(to.CertDir, keyFile), []byte(b.Own.Key)},
		{path, join}, // last: marks the installation as complete
	}
	for _, used := range []string{"etcd", "clusters", "FORMAT"} {
		if _, err := os.Stat(filepath.Join(to.DataDir, used)); err == nil {
			return b.repair(to, own)
		}
	}
	shared := []file{
		{to.EncryptionKeys, b.Secrets.EncryptionKeys},
		{filepath.Join(to.DataDir, "admin.token"), []byte(b.Secrets.AdminToken)},
		{filepath.Join(to.DataDir, "tls", "ca.crt"), []byte(b.Secrets.ClientCA.Certificate)},
		{filepath.Join(to.DataDir, "tls", "ca.key"), []byte(b.Secrets.ClientCA.Key)},
	}
	for _, f := range append(shared, own...) {
		if err := writeUnlessSame(f.path, f.data); err != nil {
			return err
		}
	}
	return nil
}

// file is a file of a bundle.
type file struct {
	path string
	data []byte
}

// repair writes the certificates and join.json again into the data directory of the same member. It
// leaves the secrets that all members share: they may have changed since the bundle was created, and
// a starting member fetches missing ones from the others.
func (b *Bundle) repair(to Paths, own []file) error {
	if !b.belongs(to) {
		return errs.Newf(errs.Conflict, "data directory %s was used by another server; a member starts with an "+
			"empty one: choose another with --data-dir", to.DataDir)
	}
	for _, f := range own {
		if have, err := os.ReadFile(f.path); err == nil && bytes.Equal(have, f.data) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return fmt.Errorf("creating the directory of %s: %w", f.path, err)
		}
		if err := atomicfile.Replace(f.path, f.data); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	return nil
}

// belongs reports whether a used data directory is that of the bundle's member. At least one file must
// show that, and none the contrary.
func (b *Bundle) belongs(to Paths) bool {
	shown := false
	if joined, err := ReadJoinConfig(to.CertDir); err == nil {
		if joined.EnsembleID != b.EnsembleID {
			return false
		}
		shown = true
	}
	files := FilesIn(to.CertDir)
	if text, err := os.ReadFile(files.Cert); err == nil {
		if block, _ := pem.Decode(text); block != nil {
			if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
				if cert.Subject.CommonName != b.Self {
					return false
				}
				shown = true
			}
		}
	}
	if text, err := os.ReadFile(files.CA); err == nil && string(text) == b.CA {
		shown = true
	}
	return shown
}

// writeUnlessSame writes a file unless it exists with the same content.
func writeUnlessSame(path string, data []byte) error {
	have, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(have, data):
		return nil
	case err == nil:
		return errs.Newf(errs.Conflict,
			"%s exists with other content; a member starts with an empty data directory", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the directory of %s: %w", path, err)
	}
	return create(path, data)
}

// InstalledMember returns the name of the member whose bundle was installed in a certificate
// directory, or "" when none was.
func InstalledMember(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, joinFile)); err != nil {
		return ""
	}
	files := FilesIn(dir)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil || pair.Leaf.Subject.CommonName == "" {
		return "of unknown name" // a bundle is installed, but its certificate cannot be read
	}
	return pair.Leaf.Subject.CommonName
}

// ReadJoinConfig reads join.json from a certificate directory.
func ReadJoinConfig(dir string) (JoinConfig, error) {
	var j JoinConfig
	text, err := os.ReadFile(filepath.Join(dir, joinFile))
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err == nil && j.EnsembleID == "" {
		err = errors.New("it does not have the id of the ensemble")
	}
	if err == nil && j.Sum != "" && j.Sum != j.sum() {
		err = errors.New("it is damaged: its checksum does not match")
	}
	if err != nil {
		return j, fmt.Errorf("reading %s: %w; install this member's bundle again with: freshet ensemble join BUNDLE "+
			"--config FILE", filepath.Join(dir, joinFile), err)
	}
	return j, nil
}

// CheckNotMember returns an error if the bundle of a member was installed in the certificate
// folder dir of a data directory. A single server must not use that directory, because the
// ensemble would not have the data that the server stores there.
func CheckNotMember(dir, dataDir string) error {
	name := InstalledMember(dir)
	if name == "" {
		return nil
	}
	return errs.Newf(errs.Precondition,
		"%s is the data directory of member %s of an ensemble, but the configuration has no members; "+
			"start it with the configuration that freshet ensemble join wrote (--config), or choose another "+
			"directory with --data-dir", dataDir, name)
}
