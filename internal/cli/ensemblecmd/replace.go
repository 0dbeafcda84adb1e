package ensemblecmd

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/ensemble/bundle"
)

func newReplace(env *command.Env) *cobra.Command {
	var dir, dataDir string
	var onlyBundle bool
	cmd := &cobra.Command{
		Use:   "replace NAME",
		Short: "Replace a lost member with an empty machine",
		Long: `Replace a lost member with an empty machine: remove the old member from the ensemble and
write a new bundle, with which the new machine joins under the same name and addresses.
It copies all data from the other members.

Stop the lost member first, and never start it again with its old data: the others would
reject it. The other members must be a majority.

'freshet ensemble init' created group.json. If the encryption keys were rotated since,
pass the data directory of a running member (--data-dir): its keys go into the bundle.`,
		Example: `  # the disk of b is gone
  freshet ensemble replace b --group freshet-group --context production

  # on the machine of a, because the encryption keys were rotated after init
  freshet ensemble replace b --group /secure/group --data-dir /var/lib/freshet

  # then, on the new machine
  freshet ensemble join b-new.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml`,
		Args: command.OneArg("the name of the lost member"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ensemble, err := bundle.ReadEnsemble(filepath.Join(dir, bundle.EnsembleFile))
			if err != nil {
				return err
			}
			if dataDir != "" {
				if err := readSecrets(ensemble, dataDir); err != nil {
					return err
				}
			}
			part, err := ensemble.Bundle(args[0], !onlyBundle)
			if err != nil {
				return err
			}
			if !onlyBundle {
				// The ensemble then accepts an empty machine in place of the lost member.
				path := membersPath + "/" + url.PathEscape(args[0]) + "/replace"
				if err := env.Call(cmd.Context(), http.MethodPost, path, nil); err != nil {
					return err
				}
			}
			path := filepath.Join(dir, args[0]+"-new.bundle")
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			if err := bundle.Write(path, part); err != nil {
				return err
			}
			result := command.Result{Kind: "member", Name: args[0], Action: "replaced", File: path}
			return env.Done(result, `%s is the bundle of the new member %s.

Next, on its machine, which must have the addresses of the old one:
  freshet ensemble join %s --data-dir /var/lib/freshet --config /etc/freshet.yaml
  freshet serve --config /etc/freshet.yaml`, path, args[0], filepath.Base(path))
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "group", "freshet-group", "`directory` that has group.json and gets the bundle")
	f.StringVar(&dataDir, "data-dir", "", "data `directory` of a running member whose secrets go into the bundle")
	f.BoolVar(&onlyBundle, "only-bundle", false,
		"write a bundle with a new certificate, and do not change the ensemble")
	return cmd
}

// readSecrets reads the secrets that can have changed after init from a data directory.
func readSecrets(ensemble *bundle.Ensemble, dataDir string) error {
	keys, err := os.ReadFile(filepath.Join(dataDir, "encryption.key"))
	if err != nil {
		return fmt.Errorf("reading the secrets in the data directory: %w", err)
	}
	token, err := os.ReadFile(filepath.Join(dataDir, "admin.token"))
	if err != nil {
		return fmt.Errorf("reading the secrets in the data directory: %w", err)
	}
	ensemble.Secrets.EncryptionKeys, ensemble.Secrets.AdminToken = keys, strings.TrimSpace(string(token))
	return nil
}
