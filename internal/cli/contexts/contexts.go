// Package contexts keeps which servers a person speaks to, and as whom: a file of
// named contexts in the user's configuration directory, and the server that runs
// on this machine, which needs no entry. A context refers to the file with its
// secret and never holds one. It makes no network calls.
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
	"syscall"

	"sigs.k8s.io/yaml"

	"freshet/internal/base/errs"
)

// Context is a server, where to work on it, and as whom.
type Context struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	// CA is the authority to trust besides the system's (PEM).
	CA           string `json:"certificateAuthority,omitempty"`
	Organization string `json:"organization"`
	Cluster      string `json:"cluster,omitempty"`
	// Instance is that of the cluster, for those who may not look it up.
	Instance   string     `json:"instance,omitempty"`
	Credential Credential `json:"credential"`
}

// Credential refers to the file that holds the secret: one of them.
type Credential struct {
	// File is the credentials file of a service account.
	File string `json:"file,omitempty"`
	// TokenFile holds an API key, or another bearer token.
	TokenFile string `json:"tokenFile,omitempty"`
	// Session is the file of a person's session, which signing in through a browser
	// made and which is renewed.
	Session string `json:"session,omitempty"`
}

// File is the file of contexts.
type File struct {
	Current  string    `json:"current,omitempty"`
	Contexts []Context `json:"contexts"`
}

// LocalName is the context of the server that runs on this machine. It is not in
// the file.
const LocalName = "local"

// DefaultCluster is the cluster when none is named: the first start makes it.
const DefaultCluster = "default"

// nameForm is what a context may be called: its name is part of file names.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// Directory is where the user's configuration of the command line is.
func Directory(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "freshet")
	}
	return filepath.Join(getenv("HOME"), ".config", "freshet")
}

// Path is that of the file of contexts.
func Path(getenv func(string) string) string {
	return cmp.Or(getenv("FRESHET_CONFIG"), filepath.Join(Directory(getenv), "contexts.yaml"))
}

// Load reads the file. One that does not exist holds no contexts.
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
		return nil, errs.Newf(errs.Invalid, "the file of contexts %s cannot be read: %w", path, err)
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

// Names are those of the contexts in the file.
func (f *File) Names() []string {
	names := make([]string, len(f.Contexts))
	for i, c := range f.Contexts {
		names[i] = c.Name
	}
	return names
}

// Put adds a context, or replaces the one of its name.
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

// Remove takes a context out of the file.
func (f *File) Remove(name string) {
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
}

// CheckName says what is wrong with the name of a context.
func CheckName(name string) error {
	switch {
	case name == LocalName:
		return errs.Newf(errs.Invalid, "the name %s is that of the server on this machine; choose another", LocalName)
	case !nameForm.MatchString(name):
		return errs.Newf(errs.Invalid,
			"%q cannot be the name of a context: letters, digits, '.', '_', '-' and '@', at most 63", name)
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

// CheckServer says what is wrong with the address of a server.
func CheckServer(server string) error {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return errs.Newf(errs.Invalid, "%q is not the address of a server: it has the form https://HOST:PORT", server)
	}
	return nil
}

// Update changes the file under a lock, so that two commands at once both count.
func Update(path string, change func(*File) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()                // ends the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a file descriptor is small
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

// WritePrivate writes a file that only its owner can read, whole or not at all.
func WritePrivate(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // gone already when all went well
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close()) // the new name survives a crash, too
}
