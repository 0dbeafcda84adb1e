// Package privatefile writes files that only their owner can read, such as keys and tokens.
// A write is atomic: a reader sees the old or the new contents. Package identity has its own
// rules for the owner of a key file; the data directory is in package datadir. It has no locks.
package privatefile

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Write atomically writes a file that only its owner can read.
func Write(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // does not exist any more after the rename
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(0o600), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// ReadOrCreate reads a secret from a file, and creates a random one at the first start. The
// file contains the secret without a newline.
func ReadOrCreate(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		text := strings.TrimSpace(string(data))
		switch {
		case text == string(data) && text != "":
			return text, nil
		case text != "":
			// Clients copy the contents into a header, so the newline must be removed.
			return text, Write(path, []byte(text))
		}
		return "", fmt.Errorf("%s is empty; remove it, and the next start creates a new one", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never returns an error; crypto/rand aborts the process instead
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text, Write(path, []byte(text))
}
