package servercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/ops/adminsocket"
	"freshet/internal/ops/backup"
)

// backupCommand has the flags of one backup command.
type backupCommand struct {
	dataDir, to   string
	withoutKeys   bool
	keep          int
	format        output.Format
	out, progress io.Writer // standard output for the result, standard error for progress
}

func newBackup() *cobra.Command {
	var b backupCommand
	cmd := &cobra.Command{
		Use:   "backup DIRECTORY|-",
		Short: "Back up a running server",
		Long: `Back up the running server of a data directory: into a new folder in DIRECTORY, or as a
tar stream to standard output (-). The backup contains everything that the server
acknowledged before the backup began: resources, messages, acknowledgements, schemas,
keys, the audit log and the configuration.

Files that the newest backup in DIRECTORY already has are hard-linked instead of copied.
A backup gets its name only when it is complete and every file was read back.

A backup is as secret as the server: anyone who can read it can read all data and act as
the system administrator. --without-keys omits the encryption keys, the operator's token
and the certificate authority.

Run the command as the user of the server, or as root.`,
		Example: `  # into a new folder in ./backups; keep the last seven
  freshet backup --keep 7 backups

  # to another machine
  freshet backup --data-dir freshet-data - | ssh backup.example 'cat > freshet.tar'

  # verify the newest backup
  freshet backup verify backups`,
		Args: command.OneArg("a directory, or - for a tar stream"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.to, b.out, b.progress = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
			if b.to == "-" && b.keep > 0 {
				return command.Usagef(cmd, "--keep cannot be combined with a tar stream")
			}
			if b.to == "-" && b.format != output.FormatText {
				return command.Usagef(cmd, "-o cannot be combined with a tar stream, which is the output")
			}
			if b.to == "-" && output.IsTerminal(b.out) {
				return command.Usagef(cmd, "standard output is a terminal; redirect the tar stream to a file or a pipe")
			}
			if b.to == "-" {
				if err := output.WarnIfReadable(b.out, b.progress, "a backup"); err != nil {
					return err
				}
			}
			return b.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	command.AddResultFlag(f, &b.format)
	f.StringVar(&b.dataDir, "data-dir", dataDirectory(), "data `directory` of the server")
	f.BoolVar(&b.withoutKeys, "without-keys", false,
		"omit the encryption keys, the operator's token and the certificate authority")
	f.IntVar(&b.keep, "keep", 0, "`number` of backups to keep; older ones are removed (0 removes none)")
	cmd.AddCommand(newBackupVerify(), newBackupList())
	return cmd
}

func (b *backupCommand) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var folder *backup.Folder
	if b.to != "-" { // fail before the server starts a backup
		if folder, err = backup.OpenFolder(b.to); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, folder.Close()) }()
	}
	server, err := adminsocket.Dial(ctx, b.dataDir, adminsocket.Request{Command: adminsocket.CommandBackup})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // makes the server remove its staged copy
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	staged, err := b.awaitStage(ctx, server)
	if err != nil {
		return err
	}
	go func() { // the staged copy exists only while the connection is open
		_, err := server.Next()
		cancel(err)
	}()
	if err := b.write(ctx, folder, staged); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

// awaitStage waits until the server has staged a copy, and returns its path.
func (b *backupCommand) awaitStage(ctx context.Context, server *adminsocket.Conn) (string, error) {
	for {
		reply, err := server.Next()
		if err != nil {
			return "", errors.Join(ctx.Err(), err)
		}
		if reply.Staged != "" {
			if !filepath.IsLocal(reply.Staged) {
				return "", errs.Newf(errs.Invalid,
					"server returned the staged copy %q, which is not in its data directory", reply.Staged)
			}
			return filepath.Join(b.dataDir, reply.Staged), nil
		}
		_, _ = fmt.Fprintln(b.progress, reply.Progress)
	}
}

func (b *backupCommand) write(ctx context.Context, folder *backup.Folder, staged string) error {
	opts := backup.Options{WithoutKeys: b.withoutKeys, Progress: reporter(b.progress, "written")}
	if folder == nil {
		return backup.WriteTar(ctx, staged, b.out, opts)
	}
	path, err := folder.Write(ctx, staged, opts)
	if err != nil {
		return err
	}
	result := command.Result{Kind: "backup", Name: filepath.Base(path), Action: "created", File: path}
	if err := result.Print(b.out, b.format, "%s", path); err != nil {
		return err
	}
	if b.keep == 0 {
		return nil
	}
	removed, err := folder.Prune(b.keep)
	for _, name := range removed {
		_, _ = fmt.Fprintln(b.progress, "removed", name)
	}
	return err
}

// reporter returns a function that prints a progress line every five seconds and at the end.
func reporter(w io.Writer, done string) func(backup.Progress) {
	const pause = 5 * time.Second
	last := time.Now()
	return func(p backup.Progress) {
		isLast := p.AllFiles > 0 && p.Files >= p.AllFiles
		if !isLast && time.Since(last) < pause {
			return
		}
		last = time.Now()
		if p.AllFiles == 0 { // of a tar stream
			_, _ = fmt.Fprintf(w, "%s %d files, %s\n", done, p.Files, formatBytes(p.Bytes))
			return
		}
		_, _ = fmt.Fprintf(w, "%s %d of %d files, %s of %s (%s of these linked)\n",
			done, p.Files, p.AllFiles, formatBytes(p.Bytes), formatBytes(p.AllBytes), formatBytes(p.Linked))
	}
}

func formatBytes(n int64) string {
	const unit = 1024
	value, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.4g %s", value, units[0])
}

func newBackupVerify() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "verify BACKUP",
		Short: "Verify the checksums of a backup",
		Long: `Verify a backup: read every file and compare its checksum. BACKUP is the folder of a
backup, a folder of backups (the newest is used), a file with a tar stream, or - for a
tar stream on standard input.`,
		Example: `  # the newest backup of a folder
  freshet backup verify backups

  # a given backup
  freshet backup verify backups/$(freshet backup list backups -o name | head -n 1)

  # a tar file
  freshet backup verify freshet.tar`,
		Args: command.OneArg("a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := backup.Verify(cmd.Context(), args[0], cmd.InOrStdin(), reporter(cmd.ErrOrStderr(), "read"))
			if err != nil {
				return err
			}
			if format.IsData() {
				return output.Value(cmd.OutOrStdout(), format, newBackupSummary(args[0], m))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "backup is valid:", describe(m))
			return err
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func describe(m *backup.Manifest) string {
	keys := "with keys"
	if !m.HasKeys {
		keys = "without keys"
	}
	return fmt.Sprintf("%s, %d clusters, %d files, %s, %s", m.Created.Format(time.RFC3339), len(m.Clusters),
		len(m.Files), formatBytes(m.Size()), keys)
}
