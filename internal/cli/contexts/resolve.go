package contexts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
	"freshet/internal/ops/kubeconfig"
)

// Selection is what a command line and its environment say about the connection.
// What is empty is left to the context.
type Selection struct {
	// File is that of the contexts, DataDir the directory in which a server on this
	// machine keeps its data.
	File, DataDir string
	// Context names one; else the current one is taken, or the server of DataDir.
	Context string
	// Server and so on win over the context.
	Server, CAFile, Organization, Cluster, Instance string
	// CredentialsFile or TokenFile win over the context's credential.
	CredentialsFile, TokenFile string
}

// Resolve finds the context and lays over it what the selection says.
func Resolve(s Selection) (Context, error) {
	if s.CredentialsFile != "" && s.TokenFile != "" {
		return Context{}, errs.New(errs.Invalid, "a credentials file and a token file were given; use one of them")
	}
	c, err := find(s)
	if err != nil {
		return Context{}, err
	}
	switch {
	case s.CredentialsFile != "":
		credentials, err := ReadCredentials(s.CredentialsFile)
		if err != nil {
			return Context{}, err
		}
		c.Credential = Credential{File: s.CredentialsFile}
		c.Server = cmp.Or(c.Server, credentials.Server())
		c.Organization = cmp.Or(credentials.Organization(), c.Organization)
	case s.TokenFile != "":
		c.Credential = Credential{TokenFile: s.TokenFile}
	}
	c.Server = strings.TrimRight(cmp.Or(s.Server, c.Server), "/")
	c.Organization = cmp.Or(s.Organization, c.Organization, "default")
	c.Cluster = cmp.Or(s.Cluster, c.Cluster, DefaultCluster)
	c.Instance = cmp.Or(s.Instance, c.Instance)
	if s.CAFile != "" {
		text, err := os.ReadFile(s.CAFile)
		if err != nil {
			return Context{}, errs.Newf(errs.NotFound, "reading the certificate authority: %w", err)
		}
		c.CA = string(text)
	}
	if c.Server == "" {
		return Context{}, hint.Add(errs.New(errs.Invalid, "no server is named"),
			"Name one with --server URL or FRESHET_SERVER.")
	}
	return c, CheckServer(c.Server)
}

// find is the context before anything is laid over it.
func find(s Selection) (Context, error) {
	file, err := Load(s.File)
	if err != nil {
		return Context{}, err
	}
	name := s.Context
	if name == "" && (s.CredentialsFile != "" || s.Server != "" && s.TokenFile != "") {
		return Context{}, nil // all of it is on the command line
	}
	name = cmp.Or(name, file.Current)
	if c, ok := file.Get(name); ok {
		return c, nil
	}
	if name != "" && name != LocalName {
		return Context{}, hint.Add(errs.Newf(errs.NotFound, "there is no context %q in %s", name, s.File),
			"'freshet context list' shows those there are, 'freshet login' makes one.")
	}
	return Local(s.DataDir)
}

// Local is the context of the server that keeps its data in a directory of this
// machine: its administrator, at the address that it wrote down when it started.
func Local(dataDir string) (Context, error) {
	token := filepath.Join(dataDir, "admin.token")
	info, err := os.Stat(token)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return Context{}, fmt.Errorf("looking for a server on this machine: %w", err)
		}
		return Context{}, hint.Add(errs.Newf(errs.NotFound, "there is no context, and no server has run in %s",
			dataDir),
			"Start one here with 'freshet serve', or sign in to another with 'freshet login CREDENTIALS-FILE'.")
	}
	// A server writes it for its owner alone. What others can read may have been put
	// here by others, for whoever calls a command in this directory.
	if info.Mode().Perm()&0o077 != 0 {
		return Context{}, hint.Add(errs.Newf(errs.Denied, "%s can be read by others: it is not as a server leaves it",
			token),
			"If the server is yours, close it with 'chmod 600 %s'; else name the server that you mean with --context.",
			token)
	}
	c := Context{Name: LocalName, Cluster: DefaultCluster, Credential: Credential{TokenFile: token}}
	text, err := os.ReadFile(filepath.Join(dataDir, "kubeconfig"))
	if err == nil {
		entry, err := kubeconfig.Entry(text)
		if err != nil {
			return Context{}, fmt.Errorf("%s: %w", filepath.Join(dataDir, "kubeconfig"), err)
		}
		c.Server, c.CA, c.Organization = entry.Server, string(entry.CA), entry.Namespace
		return c, nil
	}
	// A server without HTTPS writes no kubeconfig.
	credentials, credentialsErr := ReadCredentials(filepath.Join(dataDir, "admin.json"))
	if credentialsErr != nil {
		return Context{}, hint.Add(errs.Newf(errs.NotFound, "the server of %s has not said where it listens: %w",
			dataDir, errors.Join(err, credentialsErr)),
			"Start it with 'freshet serve', or name it with --server URL.")
	}
	c.Server, c.Organization = credentials.Server(), credentials.Organization()
	return c, nil
}

// Credentials is a credentials file of a service account.
type Credentials struct {
	Type         string `json:"type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientEmail  string `json:"client_email"`
	IssuerURL    string `json:"issuer_url"`
}

// maxCredentials bounds what is read of a file that may be another one.
const maxCredentials = 64 << 10

// ReadCredentials reads a credentials file.
func ReadCredentials(path string) (Credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, errs.Newf(errs.NotFound, "reading the credentials: %w", err)
	}
	c, err := ParseCredentials(text)
	if err != nil {
		return Credentials{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseCredentials reads the text of a credentials file.
func ParseCredentials(text []byte) (Credentials, error) {
	var c Credentials
	if len(text) > maxCredentials || json.Unmarshal(text, &c) != nil || c.ClientID == "" || c.ClientSecret == "" {
		return c, hint.Add(errs.New(errs.Invalid,
			"this is not a credentials file: it is JSON with client_id and client_secret"),
			"'freshet sa credentials NAME' writes one.")
	}
	return c, nil
}

// Server is the address of the server that the credentials are for.
func (c Credentials) Server() string { return strings.TrimRight(c.IssuerURL, "/") }

// Organization is that of the account: the principal is
// <account>@<organization>.<issuer host>.
func (c Credentials) Organization() string {
	_, host, _ := strings.Cut(c.ClientEmail, "@")
	organization, _, _ := strings.Cut(host, ".")
	return organization
}

// Account is the name of the account.
func (c Credentials) Account() string {
	account, _, _ := strings.Cut(c.ClientEmail, "@")
	return account
}
