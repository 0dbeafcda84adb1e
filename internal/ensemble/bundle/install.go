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

// Joining is what the server has to know of the bundle that was unpacked, besides
// its certificates.
type Joining struct {
	Group string `json:"group"`
	// Existing says that the group runs already, and the member takes the place of
	// one that was lost, or gets its data from the member that is the seed.
	Existing bool `json:"existing,omitempty"`
	// Seed says that the member begins with the data of another server.
	Seed bool `json:"seed,omitempty"`
}

// Places are where a bundle is unpacked to.
type Places struct {
	DataDir        string
	Bundle         string // the folder of certificates
	EncryptionKeys string // the file
}

// Install unpacks a bundle. A data directory that has been used is refused, since
// what is in it would be nobody's: but for one that the same bundle was unpacked
// to, where nothing is left to do.
func (b *Bundle) Install(to Places) error {
	join, err := json.Marshal(Joining{Group: b.Group, Existing: b.Existing, Seed: b.Seed})
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
		{filepath.Join(to.Bundle, caFile), []byte(b.CA)},
		{filepath.Join(to.Bundle, certFile), []byte(b.Own.Certificate)},
		{filepath.Join(to.Bundle, keyFile), []byte(b.Own.Key)},
		{filepath.Join(to.Bundle, joinFile), append(join, '\n')}, // last: it says that the rest is there
	}
	for _, used := range []string{"etcd", "clusters", "FORMAT"} {
		if _, err := os.Stat(filepath.Join(to.DataDir, used)); err == nil {
			return errs.Newf(errs.Conflict, "%s is the data directory of a server that has run; a member begins "+
				"with an empty one: choose another with --data-dir", to.DataDir)
		}
	}
	for _, f := range files {
		if err := place(f.path, f.data); err != nil {
			return err
		}
	}
	return nil
}

// place writes a file, or finds that it is there.
func place(path string, data []byte) error {
	have, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(have, data):
		return nil
	case err == nil:
		return errs.Newf(errs.Conflict,
			"%s is there and says something else: a member begins with an empty data directory", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	return create(path, data)
}

// MemberIn returns the name of the member whose bundle was unpacked into a folder of
// certificates; "" when none was.
func MemberIn(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, joinFile)); err != nil {
		return ""
	}
	files := FilesIn(dir)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil || pair.Leaf.Subject.CommonName == "" {
		return "of unknown name" // it is one nevertheless
	}
	return pair.Leaf.Subject.CommonName
}

// ReadJoining reads what was unpacked into a folder of certificates.
func ReadJoining(dir string) (Joining, error) {
	var j Joining
	text, err := os.ReadFile(filepath.Join(dir, joinFile))
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		return j, fmt.Errorf("reading how the member joins its group: %w; unpack its bundle with freshet cluster join",
			err)
	}
	return j, nil
}
