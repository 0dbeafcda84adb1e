package contexts

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
	"freshet/internal/ops/kubeconfig"
)

// Selection has the connection settings of flags and environment. Empty fields are taken
// from the context.
type Selection struct {
	// File is the context file, DataDir the data directory of a server on this machine.
	File, DataDir string
	// Context is the name of the context. The default is the current one, then the server
	// of DataDir.
	Context string
	// Server and the following fields override those of the context.
	Server, CAFile, Organization, Cluster, Instance string
	// CredentialsFile or TokenFile override the context's credential.
	CredentialsFile, TokenFile string
	// APIKey is an API key in the environment. CAData is a certificate authority in base64 that
	// replaces that of the context.
	APIKey, CAData string
	// CredentialServer is the server that the environment names together with its credential.
	// It is empty if the credential is not from the environment.
	CredentialServer string
	// InsecureHTTP allows sending a credential over plain HTTP to another machine.
	InsecureHTTP bool
}

// namesCredential reports whether the selection has a credential of its own.
func (s Selection) namesCredential() bool {
	return s.CredentialsFile != "" || s.TokenFile != "" || s.APIKey != ""
}

// Resolve finds the context and applies the overrides of the selection.
func Resolve(s Selection) (Context, error) {
	if s.CredentialsFile != "" && s.TokenFile != "" {
		return Context{}, errs.New(errs.Invalid, "credentials file and token file are both set; use one of them")
	}
	c, err := findContext(s)
	if err != nil {
		return Context{}, err
	}
	own := ownServerOf(s, c)
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
	case s.APIKey != "":
		c.Credential = Credential{apiKey: s.APIKey}
	}
	c.Server = strings.TrimRight(cmp.Or(s.Server, c.Server), "/")
	c.Organization = cmp.Or(s.Organization, c.Organization, "default")
	c.Cluster = cmp.Or(s.Cluster, c.Cluster, DefaultCluster)
	c.Instance = cmp.Or(s.Instance, c.Instance)
	if c.CA, err = s.Authority(c.CA); err != nil {
		return Context{}, err
	}
	if c.Server == "" {
		return Context{}, hint.Add(errs.New(errs.Invalid, "server is missing"),
			"Set it with --server URL or FRESHET_SERVER.")
	}
	if err := CheckServer(c.Server); err != nil {
		return c, err
	}
	if err := own.check(c); err != nil {
		return c, err
	}
	c.InsecureHTTP = c.InsecureHTTP || s.InsecureHTTP
	return c, CheckTransport(c.Server, c.InsecureHTTP)
}

// Authority returns the certificate authority to trust. before is that of the context.
func (s Selection) Authority(before string) (string, error) {
	switch {
	case s.CAFile != "":
		text, err := os.ReadFile(s.CAFile)
		if err != nil {
			return "", errs.Newf(errs.Invalid, "reading the certificate authority: %w", err)
		}
		return string(text), nil
	case s.CAData != "":
		text, err := base64.StdEncoding.DecodeString(s.CAData)
		if err != nil {
			return "", errs.Newf(errs.Invalid, "FRESHET_CA_DATA is not a certificate authority in base64: %w", err)
		}
		return string(text), nil
	}
	return before, nil
}

// findContext returns the context without overrides. It is empty if the flags set the server and
// the credentials.
func findContext(s Selection) (Context, error) {
	file, err := Load(s.File)
	if err != nil {
		return Context{}, err
	}
	name := s.Context
	if name == "" && (s.CredentialsFile != "" || s.Server != "" && s.namesCredential()) {
		return Context{}, nil
	}
	name = cmp.Or(name, file.Current)
	if c, ok := file.Get(name); ok {
		return c, nil
	}
	if name != "" && name != LocalName {
		return Context{}, hint.Add(errs.Newf(errs.Invalid, "context %q does not exist in %s", name, s.File),
			"'freshet context list' shows all contexts, 'freshet login' creates one.")
	}
	return Local(s.DataDir)
}

// Local returns the context of the server with its data in dataDir: the administrator's
// token, and the address that the server wrote to the directory when it started.
func Local(dataDir string) (Context, error) {
	token := tokenFile(dataDir)
	info, err := os.Stat(token)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return Context{}, fmt.Errorf("looking for a server on this machine: %w", err)
		}
		return Context{}, hint.Add(errs.Newf(errs.Invalid, "no context is set, and no server has run in %s", dataDir),
			"Start a server here with 'freshet serve', or sign in to another with 'freshet login CREDENTIALS-FILE'.")
	}
	// A server makes the file readable only by its owner. Another user may have placed a
	// file with a wider mode, to make commands in this directory use another server.
	if info.Mode().Perm()&0o077 != 0 {
		return Context{}, hint.Add(errs.Newf(errs.Denied, "file %s can be read by other users; a server writes it "+
			"with mode 0600", token),
			"If the server is yours, run 'chmod 600 %s'; otherwise choose another server with --context.", token)
	}
	if err := checkOwner(dataDir); err != nil {
		return Context{}, err
	}
	c := Context{Name: LocalName, Cluster: DefaultCluster, Credential: Credential{TokenFile: token}}
	text, err := os.ReadFile(kubeconfigFile(dataDir))
	if err == nil {
		entry, err := kubeconfig.Current(text)
		if err != nil {
			return Context{}, fmt.Errorf("%s: %w", kubeconfigFile(dataDir), err)
		}
		c.Server, c.CA, c.Organization = entry.Server, string(entry.CA), entry.Namespace
		return c, nil
	}
	// A server without HTTPS writes no kubeconfig.
	credentials, credentialsErr := ReadCredentials(credentialsFile(dataDir))
	if credentialsErr != nil {
		return Context{}, hint.Add(errs.Newf(errs.Invalid, "address of the server in %s is unknown: %w",
			dataDir, errors.Join(err, credentialsErr)),
			"Start it with 'freshet serve', or set its address with --server URL.")
	}
	c.Server, c.Organization = credentials.Server(), credentials.Organization()
	return c, nil
}

// Credentials is the content of the credentials file of a service account.
type Credentials struct {
	Type         string `json:"type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientEmail  string `json:"client_email"`
	IssuerURL    string `json:"issuer_url"`
}

// maxCredentials is the size limit in bytes. It rejects files that cannot be credentials.
const maxCredentials = 64 << 10

// ReadCredentials reads a credentials file.
func ReadCredentials(path string) (Credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, errs.Newf(errs.Invalid, "reading the credentials: %w", err)
	}
	c, err := ParseCredentials(text)
	if err != nil {
		return Credentials{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseCredentials parses the text of a credentials file.
func ParseCredentials(text []byte) (Credentials, error) {
	var c Credentials
	if len(text) > maxCredentials || json.Unmarshal(text, &c) != nil || c.ClientID == "" || c.ClientSecret == "" {
		return c, hint.Add(errs.New(errs.Invalid,
			"not a credentials file: it must be JSON with client_id and client_secret"),
			"'freshet sa credentials NAME' writes one.")
	}
	return c, nil
}

// Server returns the base URL of the server that issued the credentials.
func (c Credentials) Server() string { return strings.TrimRight(c.IssuerURL, "/") }

// Organization returns the organization of the account. The principal is
// <account>@<organization>.<issuer host>.
func (c Credentials) Organization() string {
	_, host, _ := strings.Cut(c.ClientEmail, "@")
	organization, _, _ := strings.Cut(host, ".")
	return organization
}

// Account returns the name of the account.
func (c Credentials) Account() string {
	account, _, _ := strings.Cut(c.ClientEmail, "@")
	return account
}
