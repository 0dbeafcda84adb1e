// Package contexts stores named contexts in the user's configuration directory and chooses
// the one that a command uses. The server on this machine has an implicit context, local. A
// context refers to the file with its secret and never contains the secret. The package
// makes no network calls; package command builds clients from contexts.
//
// A file lock on contexts.yaml.lock serializes Update across processes. Readers need no
// lock, because files are replaced atomically.
package contexts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/filelock"
)

// Context names a server, the organization and cluster to use on it, and credentials.
type Context struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	// CA is the certificate authority to trust in addition to the system's (PEM).
	CA           string `json:"certificateAuthority,omitempty"`
	Organization string `json:"organization"`
	Cluster      string `json:"cluster,omitempty"`
	// Instance is the cluster's instance, for accounts that may not read the cluster.
	Instance   string     `json:"instance,omitempty"`
	Credential Credential `json:"credential"`
	// InsecureHTTP allows sending the credential over plain HTTP to another machine.
	InsecureHTTP bool `json:"insecureHTTP,omitempty"`
}

// Credential refers to the file with the secret. One field is set.
type Credential struct {
	// File is the credentials file of a service account.
	File string `json:"file,omitempty"`
	// TokenFile is a file with an API key or another bearer token.
	TokenFile string `json:"tokenFile,omitempty"`
	// Session is the file of a session, written by signing in through a browser and by
	// renewals.
	Session string `json:"session,omitempty"`

	apiKey string // from the environment; never stored
}

// File is the content of the context file.
type File struct {
	Current  string    `json:"current,omitempty"`
	Contexts []Context `json:"contexts"`
}

// LocalName is the name of the context of the server on this machine. It is not in the
// file.
const LocalName = "local"

// DefaultCluster is the default cluster, which the first start of a server creates.
const DefaultCluster = "default"

// nameSyntax is the syntax of context names, which are used as file names.
var nameSyntax = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// Directory returns the user's configuration directory of the command line.
func Directory(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "freshet")
	}
	return filepath.Join(getenv("HOME"), ".config", "freshet")
}

// Path returns the path of the context file.
func Path(getenv func(string) string) string {
	return cmp.Or(getenv("FRESHET_CONFIG"), filepath.Join(Directory(getenv), "contexts.yaml"))
}

// Load reads the file. A missing file has no contexts.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the contexts: %w", err)
	}
	var f File
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return nil, errs.Newf(errs.Invalid, "context file %s is not valid: %w", path, err)
	}
	return &f, nil
}

// Get finds a context by its name.
func (f *File) Get(name string) (Context, bool) {
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return Context{}, false
	}
	return f.Contexts[i], true
}

// Names lists the names of the contexts in the file.
func (f *File) Names() []string {
	names := make([]string, len(f.Contexts))
	for i, c := range f.Contexts {
		names[i] = c.Name
	}
	return names
}

// Put adds a context, or replaces the context of the same name.
func (f *File) Put(c Context) error {
	if err := c.validate(); err != nil {
		return err
	}
	if i := slices.IndexFunc(f.Contexts, func(o Context) bool { return o.Name == c.Name }); i >= 0 {
		f.Contexts[i] = c
		return nil
	}
	f.Contexts = append(f.Contexts, c)
	return nil
}

// Remove removes a context from the file.
func (f *File) Remove(name string) {
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
}

// CheckName returns an error if name cannot be the name of a context in the file.
func CheckName(name string) error {
	switch {
	case name == LocalName:
		return errs.Newf(errs.Invalid, "context name %q is reserved for the server on this machine; choose another",
			LocalName)
	case !nameSyntax.MatchString(name):
		return errs.Newf(errs.Invalid,
			"context name %q is not valid; use at most 63 letters, digits, '.', '_', '-' and '@'", name)
	}
	return nil
}

func (c Context) validate() error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if err := CheckServer(c.Server); err != nil {
		return err
	}
	if c.Organization == "" {
		return errs.Newf(errs.Invalid, "context %s has no organization", c.Name)
	}
	return nil
}

// CheckServer returns an error if server is not the base URL of a server.
func CheckServer(server string) error {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return errs.Newf(errs.Invalid, "server address %q is not valid; write https://HOST:PORT", server)
	}
	return nil
}

// Update changes the file under a file lock, so that concurrent commands do not overwrite
// each other's changes.
func Update(path string, change func(*File) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // releases the lock
	if err := filelock.Lock(lock); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	f, err := Load(path)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return WritePrivate(path, text)
}

// WritePrivate replaces a file atomically. Only its owner can read it.
func WritePrivate(path string, data []byte) error {
	if err := atomicfile.Replace(path, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
