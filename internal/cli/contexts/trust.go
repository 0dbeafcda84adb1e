package contexts

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/fileowner"
	"freshet/internal/cli/hint"
	"freshet/internal/ops/kubeconfig"
)

// ownServer is the server that a credential belongs to.
type ownServer struct {
	credential string   // which credential it is, for errors
	addresses  []string // empty if the caller named the server and the credential together
	ca         string   // certificate authority that is recorded with the credential
}

// ownServerOf returns the server that the credential of a selection belongs to. c is the
// context without overrides.
func ownServerOf(s Selection, c Context) ownServer {
	switch {
	case s.CredentialServer != "":
		return ownServer{credential: "in the environment", addresses: []string{s.CredentialServer}}
	case s.namesCredential() || c.Server == "":
		return ownServer{}
	}
	own := ownServer{credential: "of context " + c.Name, addresses: []string{c.Server}, ca: c.CA}
	if c.Name == LocalName {
		// The server also has the address that it issues tokens with.
		file, err := ReadCredentials(credentialsFile(s.DataDir))
		if err == nil && !slices.ContainsFunc(own.addresses, sameAddress(file.Server())) {
			own.addresses = append(own.addresses, file.Server())
		}
	}
	return own
}

// CheckAddress returns an error if server is not an address of the server in dataDir, so that the
// administrator's token goes nowhere else. A directory of a server that has not started yet names
// no address; then only the transport is checked.
func CheckAddress(dataDir, server string) error {
	own := ownServer{credential: "of the server in " + dataDir}
	if text, err := os.ReadFile(kubeconfigFile(dataDir)); err == nil {
		if entry, err := kubeconfig.Current(text); err == nil {
			own.addresses = append(own.addresses, entry.Server)
		}
	}
	if file, err := ReadCredentials(credentialsFile(dataDir)); err == nil {
		own.addresses = append(own.addresses, file.Server())
	}
	if len(own.addresses) == 0 {
		return CheckTransport(server, false)
	}
	return own.check(Context{Server: server})
}

// check returns an error if the selection would send the credential to another server.
func (o ownServer) check(c Context) error {
	if len(o.addresses) == 0 {
		return nil
	}
	if !slices.ContainsFunc(o.addresses, sameAddress(c.Server)) {
		return hint.Add(errs.Newf(errs.Denied, "credential %s belongs to %s and is not sent to %s", o.credential,
			strings.Join(o.addresses, " and "), c.Server),
			"Sign in to that server with 'freshet login --server %s', or name a credential for it with "+
				"--token-file or --credentials-file.", c.Server)
	}
	if o.ca != "" && strings.TrimSpace(c.CA) != strings.TrimSpace(o.ca) {
		return hint.Add(errs.Newf(errs.Denied, "credential %s belongs to a server with another certificate authority "+
			"than that of --ca-file or the environment", o.credential),
			"If the server has a new certificate authority, sign in again with 'freshet login --ca-file FILE'.")
	}
	return nil
}

// sameAddress returns a function that reports whether an address is the same as server.
func sameAddress(server string) func(string) bool {
	want := normalAddress(server)
	return func(address string) bool { return normalAddress(address) == want }
}

// normalAddress returns an address with its port and without a trailing slash, in lower case.
func normalAddress(server string) string {
	address, err := url.Parse(server)
	if err != nil {
		return server
	}
	port := address.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[address.Scheme]
	}
	return strings.ToLower(address.Scheme) + "://" + net.JoinHostPort(strings.ToLower(address.Hostname()), port) +
		strings.TrimRight(address.Path, "/")
}

// CheckTransport returns an error if a credential for server would cross a network unencrypted.
// insecure is set if the user has allowed it.
func CheckTransport(server string, insecure bool) error {
	address, err := url.Parse(server)
	if err != nil || insecure || address.Scheme != "http" || IsLoopback(address.Hostname()) {
		return nil //nolint:nilerr // CheckServer reports an address that is not valid
	}
	return hint.Add(errs.Newf(errs.Denied, "credentials are not sent to %s: plain HTTP is not encrypted, and the "+
		"server is not on this machine", server),
		"Use its https address, or allow it with --insecure-http.")
}

// IsLoopback reports whether a host name or an IP address is this machine.
func IsLoopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// checkOwner returns an error if another user owns the data directory or one of its files. Such
// a user could make commands in this directory use a server of theirs. An absolute path is
// trusted: the user has named the directory, and has not found it in the current one.
func checkOwner(dataDir string) error {
	if filepath.IsAbs(dataDir) {
		return nil
	}
	for _, path := range []string{dataDir, tokenFile(dataDir), kubeconfigFile(dataDir), credentialsFile(dataDir)} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		uid, _, ok := fileowner.Of(info)
		if ok && uid != os.Geteuid() {
			absolute, err := filepath.Abs(dataDir)
			if err != nil {
				return err
			}
			return hint.Add(errs.Newf(errs.Denied, "%s belongs to another user (uid %d), so the server in it is not "+
				"trusted", path, uid),
				"If you trust it, set FRESHET_DATA_DIR=%s; otherwise choose another server with --context.", absolute)
		}
	}
	return nil
}

// The files in a data directory that describe its server.
func tokenFile(dataDir string) string       { return filepath.Join(dataDir, "admin.token") }
func kubeconfigFile(dataDir string) string  { return filepath.Join(dataDir, "kubeconfig") }
func credentialsFile(dataDir string) string { return filepath.Join(dataDir, "admin.json") }
