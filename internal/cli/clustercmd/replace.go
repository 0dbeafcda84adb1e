package clustercmd

import (
	"fmt"
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
		Short: "Put an empty machine in the place of a lost member",
		Long: `Put an empty machine in the place of a lost member: the group forgets the old one, and
a new bundle is written, with which the new machine joins under the same name and the
same addresses. It gets everything from the others.

The lost member must be stopped, and must never start again with its old data: it
would be refused. The other members must be a majority.

group.json is the one that 'freshet cluster init' has made. When the encryption keys
were rotated since, name the data directory of a member that runs (--data-dir): its
keys go into the bundle.`,
		Example: `  # the disk of b is gone
  freshet cluster replace b --group freshet-group --context production

  # the encryption keys were rotated since the group was made; on the machine of a
  freshet cluster replace b --group /secure/group --data-dir /var/lib/freshet

  # then, on the new machine
  freshet cluster join b-new.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml`,
		Args: command.One("the name of the lost member"),
		RunE: func(cmd *cobra.Command, args []string) error {
			group, err := bundle.ReadGroup(filepath.Join(dir, bundle.GroupFile))
			if err != nil {
				return err
			}
			if dataDir != "" {
				if err := takeSecrets(group, dataDir); err != nil {
					return err
				}
			}
			part, err := group.Bundle(args[0], !onlyBundle)
			if err != nil {
				return err
			}
			if !onlyBundle {
				if err := expect(cmd, env, args[0]); err != nil {
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
			_, err = fmt.Fprintf(env.Out, `%s is the bundle of the new member %s.

Next, on its machine, which is reached at the addresses of the old one:
  freshet cluster join %s --data-dir /var/lib/freshet --config /etc/freshet.yaml
  freshet serve --config /etc/freshet.yaml
`, path, args[0], filepath.Base(path))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "group", "freshet-group", "the `directory` with group.json, where the bundle is written")
	f.StringVar(&dataDir, "data-dir", "", "data `directory` of a member that runs, to take its secrets from")
	f.BoolVar(&onlyBundle, "only-bundle", false,
		"write a bundle with a new certificate and change nothing in the group")
	return cmd
}

// takeSecrets takes what may have changed since the group was made.
func takeSecrets(group *bundle.Group, dataDir string) error {
	keys, err := os.ReadFile(filepath.Join(dataDir, "encryption.key"))
	if err != nil {
		return fmt.Errorf("taking the secrets of a member: %w", err)
	}
	token, err := os.ReadFile(filepath.Join(dataDir, "admin.token"))
	if err != nil {
		return fmt.Errorf("taking the secrets of a member: %w", err)
	}
	group.Secrets.EncryptionKeys, group.Secrets.AdminToken = keys, strings.TrimSpace(string(token))
	return nil
}
