package servercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

// CheckReport is what the check of a data directory reports to. The server calls
// it from one goroutine.
type CheckReport = interface {
	Part(name, contents string)
	Damaged(name, problem string)
	Progress(name string, done, total int64)
}

// errDamaged makes the exit code of a check that found something; what it found is
// printed already.
var errDamaged = errors.New("the data directory is damaged")

func newCheck(server Server) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Verify the data directory of a stopped server",
		Long: `Verify the data directory of a stopped server: formats, keys, the store of
resources (etcd), and of every cluster all blocks of all tables, messages and
journals. It changes nothing, and refuses while a server runs on the directory.

The exit code is 0 when everything is whole, and 1 when something is damaged or
could not be checked. What is damaged is listed, one line each, with what that
means; docs/howto/damage.md says what to do then.`,
		Example: `  # the directory of a server with default settings
  freshet check

  # another one
  freshet check restored

  # with a configuration that puts keys or the audit trail elsewhere
  freshet check --config freshet.yaml`,
		Args: command.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			if file == "" {
				cfg.DataDir = dataDirectory()
			}
			if len(args) > 0 {
				cfg.DataDir = args[0]
			}
			return check(cmd.Context(), server, cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `file` of the server (YAML)")
	return cmd
}

func check(ctx context.Context, server Server, cfg *config.Config, out, progress io.Writer) error {
	p := &checkPrinter{out: out, progress: output.NewProgress(progress, os.Getenv)}
	if err := server.Check(ctx, cfg, p); err != nil {
		return errors.Join(err, p.err)
	}
	p.progress.Clear()
	if p.damaged > 0 {
		return errors.Join(fmt.Errorf("%w: %s in %s; docs/howto/damage.md says what to do", errDamaged,
			output.Number(p.damaged, "thing"), cfg.DataDir), p.err)
	}
	p.print("%s is whole\n", cfg.DataDir)
	return p.err
}

// checkPrinter prints one line per part, and how far it is on a terminal.
type checkPrinter struct {
	out      io.Writer
	progress *output.Progress
	damaged  int
	err      error // of printing
}

func (p *checkPrinter) print(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); p.err == nil {
		p.err = err
	}
}

// Part implements CheckReport.
func (p *checkPrinter) Part(name, contents string) {
	p.progress.Clear()
	p.print("ok       %s: %s\n", name, contents)
}

// Damaged implements CheckReport.
func (p *checkPrinter) Damaged(name, problem string) {
	p.progress.Clear()
	p.damaged++
	p.print("DAMAGED  %s: %s\n", name, problem)
}

// Progress implements CheckReport.
func (p *checkPrinter) Progress(name string, done, total int64) {
	if total > 0 {
		p.progress.Printf("checking %s: %d %%", name, done*100/total)
	}
}
