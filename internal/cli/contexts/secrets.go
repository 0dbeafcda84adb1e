package contexts

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// APIKey returns the API key of the environment, "" if the credential is in a file.
func (c Credential) APIKey() string { return c.apiKey }

// Source names the file with the secret, or the environment variable.
func (c Credential) Source() string {
	if c.apiKey != "" {
		return "environment variable FRESHET_API_KEY"
	}
	return c.Path()
}

// Path returns the path of the file with the secret.
func (c Credential) Path() string { return cmp.Or(c.File, c.TokenFile, c.Session) }

// secretsDirectory returns the directory, below the user's configuration directory, for the
// secrets that signing in stores.
func secretsDirectory(directory string) string { return filepath.Join(directory, "credentials") }

// StoreSecret writes the secret of a context into the user's configuration directory, readable
// only by its owner, and returns the file's path.
func StoreSecret(directory, name string, secret []byte) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	path := SecretPath(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, WritePrivate(path, secret)
}

// SecretPath returns the path of the stored secret of a context.
func SecretPath(directory, name string) string {
	return filepath.Join(secretsDirectory(directory), name)
}

// RemoveSecret removes the stored secret of a context. It does not remove a file that the context
// only refers to.
func RemoveSecret(directory string, c Context) error {
	if path := c.Credential.Path(); path != "" && filepath.Dir(path) == secretsDirectory(directory) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
