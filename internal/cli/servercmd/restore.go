package servercmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/ops/backup"
)

func newRestore(server Server) *cobra.Command {
	var o backup.RestoreOptions
	var format output.Format
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Restore a backup into a new data directory",
		Long: `Restore a backup into a new data directory. BACKUP is the folder of a backup, a folder of
backups (the newest is used), a file with a tar stream, or - for a tar stream on standard
input. The data directory must be empty or not exist.

The command verifies the checksum of every file. A server does not start on an incomplete
directory; repeat the command if it was interrupted.

The restored server may have another address: accounts, keys and permissions do not depend
on it. The configuration of the old server is in configuration.yaml in the data
directory, for comparison.

Run the command as the user of the server.`,
		Example: `  # the newest backup
  freshet restore backups --data-dir restored

  # from another machine
  ssh backup.example 'cat freshet.tar' | freshet restore - --data-dir restored-from-afar

  # a backup without keys
  freshet restore keyless --data-dir restored-with-keys --encryption-key encryption.key`,
		Args: command.OneArg("a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("data-dir") {
				return command.Usagef(cmd, "--data-dir is missing; set the data directory to create")
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
			return command.Result{Kind: "backup", Name: args[0], Action: "restored", File: o.DataDir}.Print(
				cmd.OutOrStdout(), format, "restored to %s: %s\n%s", o.DataDir, describe(m), next)
		},
	}
	f := cmd.Flags()
	command.AddResultFlag(f, &format)
	f.StringVar(&o.DataDir, "data-dir", "", "data `directory` to create")
	f.StringVar(&o.EncryptionKey, "encryption-key", "", "encryption key `file`, for a backup without keys")
	return cmd
}
