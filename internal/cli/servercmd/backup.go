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
	"freshet/internal/ops/adminsocket"
	"freshet/internal/ops/backup"
)

// backupRun is one run of backup.
type backupRun struct {
	dataDir, to string
	withoutKeys bool
	keep        int
	out, tell   io.Writer // what was asked for, and how it goes
}

func newBackup() *cobra.Command {
	var b backupRun
	cmd := &cobra.Command{
		Use:   "backup DIRECTORY|-",
		Short: "Back up a running server",
		Long: `Take a backup of the server that runs on a data directory, while it works: into a
new folder in DIRECTORY, or as a tar stream to standard output (-). It holds
everything that was acknowledged before it began: resources, messages,
acknowledgements, schemas, keys, the audit trail and the configuration.

What the newest backup in DIRECTORY has already is not written again but linked.
A backup has a name only when it is complete and every file has been read back.

A backup is as secret as the server: whoever reads it can read everything and
act as the system administrator. --without-keys leaves out the encryption keys,
the operator's token and the certificate authority.

Run it as the user of the server, or as root.`,
		Example: `  # into a new folder in ./backups, of which the last seven are kept
  freshet backup --keep 7 backups

  # to another machine
  freshet backup --data-dir freshet-data - | ssh backup.example 'cat > freshet.tar'

  # is it good?
  freshet backup verify backups`,
		Args: command.One("a directory, or - for a tar stream"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.to, b.out, b.tell = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
			if b.to == "-" && b.keep > 0 {
				return command.Usagef(cmd, "--keep is for a directory")
			}
			return b.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.dataDir, "data-dir", dataDirectory(), "the server's data `directory`")
	f.BoolVar(&b.withoutKeys, "without-keys", false, "leave out what gives access by itself")
	f.IntVar(&b.keep, "keep", 0, "then remove the oldest backups until `n` are left (0: remove none)")
	cmd.AddCommand(newBackupVerify(), newBackupList())
	return cmd
}

func (b *backupRun) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var folder *backup.Folder
	if b.to != "-" { // before the server does anything
		if folder, err = backup.OpenFolder(b.to); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, folder.Close()) }()
	}
	server, err := adminsocket.Dial(ctx, b.dataDir, adminsocket.Request{Do: adminsocket.DoBackup})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // the server removes its copy then
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	staged, err := b.awaitStage(ctx, server)
	if err != nil {
		return err
	}
	go func() { // the copy is good only while the server is there
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

// awaitStage waits for the server's copy.
func (b *backupRun) awaitStage(ctx context.Context, server *adminsocket.Conn) (string, error) {
	for {
		reply, err := server.Next()
		if err != nil {
			return "", errors.Join(ctx.Err(), err)
		}
		if reply.Staged != "" {
			if !filepath.IsLocal(reply.Staged) {
				return "", errs.Newf(errs.Invalid, "the server names %q, which is not in its data directory",
					reply.Staged)
			}
			return filepath.Join(b.dataDir, reply.Staged), nil
		}
		_, _ = fmt.Fprintln(b.tell, reply.Progress) // a courtesy
	}
}

func (b *backupRun) write(ctx context.Context, folder *backup.Folder, staged string) error {
	opts := backup.Options{WithoutKeys: b.withoutKeys, Progress: reporter(b.tell, "written")}
	if folder == nil {
		return backup.WriteTar(ctx, staged, b.out, opts)
	}
	path, err := folder.Write(ctx, staged, opts)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(b.out, path); err != nil {
		return err
	}
	if b.keep == 0 {
		return nil
	}
	removed, err := folder.Keep(b.keep)
	for _, name := range removed {
		_, _ = fmt.Fprintln(b.tell, "removed", name) // a courtesy
	}
	return err
}

// reporter tells how it goes, a line every few seconds and one at the end.
func reporter(tell io.Writer, done string) func(backup.Progress) {
	const pause = 5 * time.Second
	last := time.Now()
	return func(p backup.Progress) {
		if p.Files < p.AllFiles && time.Since(last) < pause {
			return
		}
		last = time.Now()
		_, _ = fmt.Fprintf(tell, "%s %d of %d files, %s of %s (%s of these linked)\n", // a courtesy
			done, p.Files, p.AllFiles, bytesText(p.Bytes), bytesText(p.AllBytes), bytesText(p.Linked))
	}
}

func bytesText(n int64) string {
	const unit = 1024
	value, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.4g %s", value, units[0])
}

func newBackupVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify BACKUP",
		Short: "Read a whole backup and compare every file to its checksum",
		Long: `Read a whole backup and compare every file to its checksum. BACKUP is the folder
of a backup, the folder of several (the newest is meant), a file with a tar
stream, or - for one on standard input.`,
		Example: `  # the newest of a directory
  freshet backup verify backups

  # a single one
  freshet backup verify backups/$(freshet backup list backups | head -n 1 | cut -f 1)

  # a stream
  freshet backup verify freshet.tar`,
		Args: command.One("a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := backup.Verify(cmd.Context(), args[0], cmd.InOrStdin(), reporter(cmd.ErrOrStderr(), "read"))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "the backup is good:", describe(m))
			return err
		},
	}
}

func describe(m *backup.Manifest) string {
	keys := "with keys"
	if !m.HasKeys {
		keys = "without keys"
	}
	return fmt.Sprintf("%s, %d clusters, %d files, %s, %s", m.Created.Format(time.RFC3339), len(m.Clusters),
		len(m.Files), bytesText(m.Size()), keys)
}

func newBackupList() *cobra.Command {
	return &cobra.Command{
		Use:   "list DIRECTORY",
		Short: "List the backups in a directory, oldest first",
		Example: `  # when they began, and how much they hold
  freshet backup list backups

  # the newest
  freshet backup list backups | tail -n 1

  # how many there are
  freshet backup list backups | wc -l`,
		Args: command.One("a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := backup.List(args[0])
			if err != nil {
				return errs.Newf(errs.NotFound, "%w", err)
			}
			for _, name := range names {
				text := "cannot be read"
				if m, err := backup.Read(filepath.Join(args[0], name)); err == nil {
					text = describe(m)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\n", name, text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
