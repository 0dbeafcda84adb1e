package contexts

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Path is the file with the secret.
func (c Credential) Path() string { return cmp.Or(c.File, c.TokenFile, c.Session) }

// credentialsIn is the folder, in the user's configuration directory, with the
// copies that signing in makes.
func credentialsIn(directory string) string { return filepath.Join(directory, "credentials") }

// Keep writes a secret into the user's configuration directory, readable for its
// owner alone, and returns the file's path.
func Keep(directory, name string, secret []byte) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	path := KeptAt(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, WritePrivate(path, secret)
}

// KeptAt is where the secret of a context is kept.
func KeptAt(directory, name string) string { return filepath.Join(credentialsIn(directory), name) }

// Forget removes the copy of a context's secret, when it is one that Keep made.
func Forget(directory string, c Context) error {
	if path := c.Credential.Path(); path != "" && filepath.Dir(path) == credentialsIn(directory) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
