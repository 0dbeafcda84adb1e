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

// CheckReport receives the results of the check of a data directory. The server calls it
// from one goroutine.
type CheckReport = interface {
	Part(name, contents string)
	Damaged(name, problem, remedy string)
	Progress(name string, done, total int64)
}

// errDamaged is the error of a check that found damage. The damage itself is already
// printed.
var errDamaged = errors.New("data directory is damaged")

func newCheck(server Server) *cobra.Command {
	var file string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Verify the data directory of a stopped server",
		Long: `Verify the data directory of a stopped server: formats, keys, the resource store (etcd),
and for every cluster all blocks of all tables, messages and journals. On a member of an
ensemble it also verifies the replicated log (all files of NATS), copies of journals,
checkpoints, recorded positions, secrets and the certificate. The command changes
nothing, and fails if a server is using the directory.

The exit code is 0 if everything is intact, and 1 if something is damaged or could not be
checked. Each damage is listed with its consequences and, in the next line, how the part
is replaced: automatically from the other members of an ensemble, by a command, or from a
backup. docs/howto/damage.md has the details.`,
		Example: `  # the data directory of a server with default settings
  freshet check

  # another data directory
  freshet check restored

  # with a configuration that sets other paths for keys or the audit log
  freshet check --config freshet.yaml`,
		Args: command.MaxArgs(1),
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
			return check(cmd.Context(), server, cfg, format, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `file` of the server (YAML)")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// checkResult is the result of check in the form of -o json.
type checkResult struct {
	DataDir string      `json:"dataDir"`
	Intact  bool        `json:"intact"`
	Parts   []checkPart `json:"parts"`
}

type checkPart struct {
	Name     string `json:"name"`
	Damaged  bool   `json:"damaged"`
	Contents string `json:"contents,omitempty"`
	Problem  string `json:"problem,omitempty"`
	// Remedy is how a damaged part is replaced.
	Remedy string `json:"remedy,omitempty"`
}

func check(ctx context.Context, server Server, cfg *config.Config, format output.Format,
	out, progress io.Writer,
) error {
	p := &checkPrinter{out: out, progress: output.NewProgress(progress, os.Getenv), parts: []checkPart{}}
	if format.IsData() {
		p.out = io.Discard
	}
	if err := server.Check(ctx, cfg, p); err != nil {
		return errors.Join(err, p.err)
	}
	p.progress.Clear()
	if format.IsData() {
		p.err = output.Value(out, format, checkResult{cfg.DataDir, p.damaged == 0, p.parts})
	}
	if p.damaged > 0 {
		return errors.Join(fmt.Errorf("%w: %s in %s; see docs/howto/damage.md", errDamaged,
			output.Number(p.damaged, "damaged part"), cfg.DataDir), p.err)
	}
	p.print("%s is intact\n", cfg.DataDir)
	return p.err
}

// checkPrinter prints one line per part, and a progress line on a terminal.
type checkPrinter struct {
	out      io.Writer
	progress *output.Progress
	parts    []checkPart
	damaged  int
	err      error // first error of printing
}

func (p *checkPrinter) print(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); p.err == nil {
		p.err = err
	}
}

// Part implements CheckReport.
func (p *checkPrinter) Part(name, contents string) {
	p.progress.Clear()
	p.parts = append(p.parts, checkPart{Name: name, Contents: contents})
	p.print("ok       %s: %s\n", name, contents)
}

// Damaged implements CheckReport.
func (p *checkPrinter) Damaged(name, problem, remedy string) {
	p.progress.Clear()
	p.damaged++
	p.parts = append(p.parts, checkPart{Name: name, Damaged: true, Problem: problem, Remedy: remedy})
	p.print("DAMAGED  %s: %s\n", name, problem)
	if remedy != "" {
		p.print("         %s\n", remedy)
	}
}

// Progress implements CheckReport.
func (p *checkPrinter) Progress(name string, done, total int64) {
	if total > 0 {
		p.progress.Printf("checking %s: %d %%", name, done*100/total)
	}
}
