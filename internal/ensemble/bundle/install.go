package bundle

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
}

// Paths are the paths that a bundle is installed to.
type Paths struct {
	DataDir        string
	CertDir        string // directory of the certificates
	EncryptionKeys string // path of the key file
}

// Install writes the bundle's files. It refuses a data directory that a server has used,
// because that data belongs to no member. Installing the same bundle again is a no-op.
func (b *Bundle) Install(to Paths) error {
	join, err := json.Marshal(JoinConfig{EnsembleID: b.EnsembleID, Existing: b.Existing, Seed: b.Seed})
	if err != nil {
		return err
	}
	files := []struct {
		path string
		data []byte
	}{
		{to.EncryptionKeys, b.Secrets.EncryptionKeys},
		{filepath.Join(to.DataDir, "admin.token"), []byte(b.Secrets.AdminToken)},
		{filepath.Join(to.DataDir, "tls", "ca.crt"), []byte(b.Secrets.ClientCA.Certificate)},
		{filepath.Join(to.DataDir, "tls", "ca.key"), []byte(b.Secrets.ClientCA.Key)},
		{filepath.Join(to.CertDir, caFile), []byte(b.CA)},
		{filepath.Join(to.CertDir, certFile), []byte(b.Own.Certificate)},
		{filepath.Join(to.CertDir, keyFile), []byte(b.Own.Key)},
		{filepath.Join(to.CertDir, joinFile), append(join, '\n')}, // last: marks the installation as complete
	}
	for _, used := range []string{"etcd", "clusters", "FORMAT"} {
		if _, err := os.Stat(filepath.Join(to.DataDir, used)); err == nil {
			return errs.Newf(errs.Conflict, "data directory %s was used by another server; a member starts with an "+
				"empty one: choose another with --data-dir", to.DataDir)
		}
	}
	for _, f := range files {
		if err := writeUnlessSame(f.path, f.data); err != nil {
			return err
		}
	}
	return nil
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
	if err != nil {
		return j, fmt.Errorf("reading %s: %w; install this member's bundle with freshet ensemble join", joinFile, err)
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
