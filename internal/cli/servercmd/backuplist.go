package servercmd

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/ops/backup"
)

// backupSummary is a backup in a list.
type backupSummary struct {
	Name     string     `json:"name"`
	Created  *time.Time `json:"created,omitempty"`
	Clusters int        `json:"clusters"`
	Files    int        `json:"files"`
	Bytes    int64      `json:"bytes"`
	HasKeys  bool       `json:"hasKeys"`
	// Error is why the backup cannot be read.
	Error string `json:"error,omitempty"`

	text string
}

func newBackupList() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "list DIRECTORY",
		Short: "List the backups in a directory, oldest first",
		Example: `  # with their start times and sizes
  freshet backup list backups

  # the name of the newest
  freshet backup list backups -o name | tail -n 1

  # as JSON, for scripts
  freshet backup list backups -o json`,
		Args: command.OneArg("a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := backup.List(args[0])
			if err != nil {
				return errs.Newf(errs.Invalid, "%w", err)
			}
			return printBackups(cmd, format, summarize(args[0], names))
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

// summarize reads the manifests of backups.
func summarize(directory string, names []string) []backupSummary {
	list := make([]backupSummary, len(names))
	for i, name := range names {
		m, err := backup.Read(filepath.Join(directory, name))
		if err != nil {
			list[i] = backupSummary{Name: name, Error: err.Error(), text: "cannot be read"}
			continue
		}
		list[i] = newBackupSummary(name, m)
	}
	return list
}

func newBackupSummary(name string, m *backup.Manifest) backupSummary {
	return backupSummary{
		Name: name, Created: &m.Created, Clusters: len(m.Clusters), Files: len(m.Files), Bytes: m.Size(),
		HasKeys: m.HasKeys, text: describe(m),
	}
}

func printBackups(cmd *cobra.Command, format output.Format, list []backupSummary) error {
	if format.IsData() {
		return output.Value(cmd.OutOrStdout(), format, list)
	}
	for i := range list {
		line := list[i].Name
		if format == output.FormatText {
			line += "\t" + list[i].text
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
			return err
		}
	}
	return nil
}
