package servercmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/ops/backup"
)

func newRestore(server Server) *cobra.Command {
	var o backup.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Make a data directory of a backup",
		Long: `Make a data directory of a backup. BACKUP is the folder of a backup, the folder of
several (the newest is taken), a file with a tar stream, or - for one on standard
input. The data directory must be empty, or not exist.

Every file is compared to its checksum. No server starts on a directory that is
not complete; a run that was cut short is repeated with the same command.

The server that starts on it may have another address: accounts, keys and
permissions do not depend on it. The configuration that the server ran with is
in configuration.yaml in the data directory, for you to compare.

Run it as the user of the server.`,
		Example: `  # the newest backup
  freshet restore backups --data-dir restored

  # from another machine
  ssh backup.example 'cat freshet.tar' | freshet restore - --data-dir restored-from-afar

  # one without keys
  freshet restore keyless --data-dir restored-with-keys --encryption-key encryption.key`,
		Args: command.One("a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("data-dir") {
				return command.Usagef(cmd, "--data-dir is required: the data directory to make")
			}
			o.From, o.Stdin, o.Progress = args[0], cmd.InOrStdin(), reporter(cmd.ErrOrStderr(), "restored")
			steps := newSteps(cmd.ErrOrStderr())
			o.Steps = steps
			m, err := server.Restore(cmd.Context(), o)
			steps.progress.Clear()
			if err != nil {
				return err
			}
			next := fmt.Sprintf("start the server: freshet serve --data-dir %s", o.DataDir)
			if m.Etcd == backup.EtcdExternal {
				next = fmt.Sprintf("restore %s to your etcd with etcdutl, then start the server",
					filepath.Join(o.DataDir, backup.EtcdSnapshot))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored to %s: %s\n%s\n", o.DataDir, describe(m), next)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.DataDir, "data-dir", "", "the data `directory` to make")
	f.StringVar(&o.EncryptionKey, "encryption-key", "", "the `file` of the encryption keys, for a backup without keys")
	return cmd
}
