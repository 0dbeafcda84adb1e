package cli

import (
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"freshet/internal/config"
	"freshet/internal/errs"
	"freshet/internal/kubeconfig"
)

func newKubeconfig() *cobra.Command {
	defaults := config.Default()
	var o struct{ dataDir, server, organization string }
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for the server on this machine",
		Long: `Print a kubeconfig with which kubectl speaks to the server as the system
administrator. It refers to the token and the certificate authority in the data
directory and holds no secret itself.`,
		Example: `  # use it at once
  freshet kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get mi

  # another port, another organization
  freshet kubeconfig --server https://127.0.0.1:9443 --organization acme

  # a server with its data elsewhere
  freshet kubeconfig --data-dir /var/lib/freshet`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := url.Parse(o.server)
			if err != nil || base.Host == "" || base.Scheme != "https" {
				return usagef(cmd, "--server takes an https URL, not %q: kubectl sends credentials over nothing else", o.server)
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
	f.StringVar(&o.dataDir, "data-dir", defaults.DataDir, "the server's data `directory`")
	f.StringVar(&o.server, "server", defaults.SecureURL(), "HTTPS base `URL` of the server")
	f.StringVar(&o.organization, "organization", defaults.Admin.Organization, "`organization` (namespace) of the context")
	return cmd
}

// adminOptions refers to what the server left in its data directory, by
// absolute path: the kubeconfig may be used from anywhere.
func adminOptions(dataDir string, base *url.URL) (kubeconfig.Options, error) {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return kubeconfig.Options{}, err
	}
	token := filepath.Join(dir, "admin.token")
	if _, err := os.Stat(token); err != nil {
		return kubeconfig.Options{}, errs.Newf(errs.NotFound,
			"%s is not the data directory of a server that has run: %w", dataDir, err)
	}
	options := kubeconfig.Options{Server: base.String(), TokenFile: token}
	// A server with a certificate of its own has made no authority.
	ca := filepath.Join(dir, "tls", "ca.crt")
	if _, err := os.Stat(ca); err == nil {
		options.CAFile = ca
	}
	return options, nil
}
