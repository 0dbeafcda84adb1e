package contexts

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Path returns the path of the file with the secret.
func (c Credential) Path() string { return cmp.Or(c.File, c.TokenFile, c.Session) }

// credentialsIn returns the directory, below the user's configuration directory, for the
// secrets that signing in stores.
func credentialsIn(directory string) string { return filepath.Join(directory, "credentials") }

// Keep writes the secret of a context into the user's configuration directory, readable
// only by its owner, and returns the file's path.
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

// KeptAt returns the path of the stored secret of a context.
func KeptAt(directory, name string) string { return filepath.Join(credentialsIn(directory), name) }

// Forget removes the stored secret of a context. It does not remove a file that the context
// only refers to.
func Forget(directory string, c Context) error {
	if path := c.Credential.Path(); path != "" && filepath.Dir(path) == credentialsIn(directory) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
