// Package adminfiles writes the files with the administrator's credentials into the data
// directory: admin.json, and a kubeconfig with the operator's token (admin.token). Both contain
// the current addresses, which may differ from those of the first start. Package kubeconfig
// defines the format of a kubeconfig. It has no locks.
package adminfiles

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"freshet/internal/base/privatefile"
	"freshet/internal/ops/kubeconfig"
)

// Names of the files in the data directory.
const (
	Credentials = "admin.json"
	Token       = "admin.token"
	Kubeconfig  = "kubeconfig"
)

// Files are the files in a data directory.
type Files struct {
	Dir       string // data directory
	Server    string // URL of the server over TLS, or "" without TLS
	CAFile    string // certificate of the server's own authority, or "" if it has none
	Namespace string // organization of the administrator
}

// Exist reports whether an earlier start has written the files.
func (f Files) Exist() bool {
	_, err := os.Stat(f.path(Credentials))
	return err == nil
}

// Write writes the files that have changed.
func (f Files) Write(credentials []byte) error {
	if err := writeChanged(f.path(Credentials), credentials); err != nil {
		return err
	}
	token, err := privatefile.ReadOrCreate(f.path(Token))
	if err != nil {
		return err
	}
	options := kubeconfig.Options{Server: f.Server, Token: token, Namespace: f.Namespace}
	if options.Server == "" {
		// Kubernetes clients send no credentials over plain HTTP. A kubeconfig of an
		// earlier start would contain an address that does not exist any more.
		if err := os.Remove(f.path(Kubeconfig)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the old kubeconfig: %w", err)
		}
		return nil
	}
	if f.CAFile != "" {
		if options.CA, err = os.ReadFile(f.CAFile); err != nil {
			return fmt.Errorf("reading the certificate authority: %w", err)
		}
	}
	text, err := kubeconfig.Marshal(options)
	if err != nil {
		return err
	}
	return writeChanged(f.path(Kubeconfig), text)
}

func (f Files) path(name string) string { return filepath.Join(f.Dir, name) }

// writeChanged writes a file unless it already has the same contents.
func writeChanged(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return privatefile.Write(path, data)
}
