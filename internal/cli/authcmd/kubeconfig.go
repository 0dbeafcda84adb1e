package authcmd

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/config"
	"freshet/internal/errs"
	"freshet/internal/kubeconfig"
)

func newKubeconfig(env *command.Env) *cobra.Command {
	defaults := config.Default()
	var o struct{ dataDir, server, organization string }
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for the server on this machine",
		Long: `Print a kubeconfig with which kubectl speaks to the server as the system
administrator, wherever it is copied to: the certificate authority and the token
of the data directory are in it, so keep it as secret as the token. The address is
the one that the server recorded there when it last started.`,
		Example: `  # use it at once
  freshet kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get mi

  # another port, another organization
  freshet kubeconfig --server https://127.0.0.1:9443 --organization acme

  # a server with its data elsewhere
  freshet kubeconfig --data-dir /var/lib/freshet`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.server == "" {
				o.server = defaults.SecureURL()
				if local, err := contexts.Local(o.dataDir); err == nil {
					o.server = local.Server
				}
			}
			base, err := url.Parse(o.server)
			if err != nil || base.Host == "" || base.Scheme != "https" {
				return command.Usagef(cmd, "--server takes an https URL, not %q: kubectl sends credentials over nothing else", o.server)
			}
			options, err := adminOptions(o.dataDir, base)
			if err != nil {
				return err
			}
			options.Namespace = o.organization
			text, err := kubeconfig.Marshal(options)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", env.DataDir(), "the server's data `directory`")
	f.StringVar(&o.server, "server", "", "HTTPS base `URL` of the server (default: as recorded in the data directory)")
	f.StringVar(&o.organization, "organization", defaults.Admin.Organization, "`organization` (namespace) of the context")
	return cmd
}

// adminOptions takes what the server left in its data directory.
func adminOptions(dataDir string, base *url.URL) (kubeconfig.Options, error) {
	token, err := os.ReadFile(filepath.Join(dataDir, "admin.token"))
	if err != nil {
		return kubeconfig.Options{}, errs.Newf(errs.NotFound,
			"%s is not the data directory of a server that has run: %w", dataDir, err)
	}
	options := kubeconfig.Options{Server: base.String(), Token: strings.TrimSpace(string(token))}
	// A server with a certificate of its own has made no authority.
	options.CA, err = os.ReadFile(filepath.Join(dataDir, "tls", "ca.crt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return kubeconfig.Options{}, errs.Newf(errs.NotFound, "reading the certificate authority: %w", err)
	}
	return options, nil
}
