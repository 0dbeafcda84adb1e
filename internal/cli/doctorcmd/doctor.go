// Package doctorcmd implements `freshet doctor`, which diagnoses a server or a connection.
// If the server is on this machine it checks the configuration, the data directory, the
// disk, the addresses, etcd, NATS and the other members. It then checks the server with
// requests that any client can send. It changes nothing.
//
// An Inspector, which is passed in, does the checks that need the server's internals (data
// formats, NATS), so that the package does not import the server.
package doctorcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

// Inspector inspects what a server on this machine uses. It changes nothing.
type Inspector interface {
	// Formats reports whether an older version wrote the data directory. It returns an error if
	// this version cannot read it.
	Formats(dir string) (older bool, err error)
	// InspectNATS inspects the NATS servers of a configuration. It returns a description, the
	// settings that keep members from becoming ready (problems), and those that it warns about.
	InspectNATS(ctx context.Context, cfg *config.Config) (description string, problems, warnings []string, err error)
}

// The outcomes of a check.
const (
	ok   = "ok"
	warn = "warn"
	fail = "FAIL"
)

// finding is the outcome of one check.
type finding struct {
	Check   string `json:"check"`
	Status  string `json:"status"`
	Message string `json:"message"`
	// Next is the advice to the user.
	Next string `json:"next,omitempty"`
}

// report has the outcomes of all checks. OK is false if a check failed.
type report struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

// doctor is the state of one doctor command.
type doctor struct {
	env       *command.Env
	inspector Inspector
	file      string // configuration file (--config)
	emit      func(finding) error

	report report
	err    error // first error of printing

	config        *config.Config // of the server on this machine; nil for a server elsewhere
	serverRunning bool           // the server on this machine is running
	at            contexts.Context
	kafkaReached  bool // the Kafka listener of this machine was reached
	linked        bool // findings are about a server, which serves the pages that they name
}

// Commands returns `freshet doctor`.
func Commands(env *command.Env, inspector Inspector) []*cobra.Command {
	return command.InSection(command.SectionServer, newDoctor(env, inspector))
}

func newDoctor(env *command.Env, inspector Inspector) *cobra.Command {
	d := &doctor{env: env, inspector: inspector}
	var format output.Format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose a server or a connection",
		Long: `Diagnose a server or a connection. Each check prints one line: ok, warn or FAIL, and what
to do next. The command changes nothing.

On the machine of a server it checks the configuration, the data directory (format,
permissions, lock), the disk, the addresses, etcd, your own NATS servers (version,
JetStream, message size, whether they sync every write), and the other members of an
ensemble with their etcd and log (NATS). For any server it checks the certificate, the
clock, the health, the version, your token, your roles, and each API: resources,
messages, schemas, the Kafka protocol, the console.

The exit code is 0 if no check failed, and 1 otherwise.`,
		Example: `  # the server of ./freshet-data, or of the current context
  freshet doctor

  # check a configuration before the first start
  freshet doctor --config freshet.yaml

  # as an application, as JSON for a script
  freshet doctor --server $SERVER --ca-file freshet-data/tls/ca.crt --token-file freshet-data/admin.token -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return d.run(ctx, format)
		},
	}
	cmd.Flags().StringVar(&d.file, "config", "", "configuration `file` of the server on this machine (YAML)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "timeout for all checks together")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func (d *doctor) run(ctx context.Context, format output.Format) error {
	d.report = report{OK: true, Checks: []finding{}}
	d.emit = func(finding) error { return nil }
	if format == output.FormatText {
		d.emit = d.printLine
	}
	d.runChecks(ctx)
	if d.err == nil && format != output.FormatText {
		d.err = output.Value(d.env.Out, format, d.report)
	}
	if d.err != nil {
		return d.err
	}
	if !d.report.OK {
		return command.ExitSilently(1)
	}
	return nil
}

// runChecks runs all checks, each after the checks that it depends on.
func (d *doctor) runChecks(ctx context.Context) {
	at, err := d.env.Context()
	d.at = at
	// A context of another server has no relation to this machine.
	if d.file != "" || err != nil || at.Name == contexts.LocalName {
		if !d.machine(ctx) && (err != nil || at.Name == contexts.LocalName) {
			return
		}
	}
	if err != nil {
		d.failed("connection", err.Error(), "Start a server with 'freshet serve', or sign in to one with 'freshet "+
			"login'; 'freshet context list' shows your contexts.")
		return
	}
	d.linked = true
	if d.server(ctx) {
		d.surfaces(ctx, d.caller(ctx))
	}
}

func (d *doctor) add(f finding) {
	f.Message, f.Next = output.Clean(f.Message), output.Clean(f.Next)
	d.report.Checks = append(d.report.Checks, f)
	if f.Status == fail {
		d.report.OK = false
	}
	if err := d.emit(f); d.err == nil {
		d.err = err
	}
}

func (d *doctor) good(check, format string, args ...any) {
	d.add(finding{Check: check, Status: ok, Message: fmt.Sprintf(format, args...)})
}

func (d *doctor) warned(check, message, next string) { d.add(finding{check, warn, message, next}) }
func (d *doctor) failed(check, message, next string) { d.add(finding{check, fail, message, next}) }

// unchecked reports a check that only a program with the server can do.
func (d *doctor) unchecked(check string) {
	d.warned(check, "not checked: this program is the command line without the server",
		"Run 'freshet doctor' with the program that the server runs.")
}

func (d *doctor) printLine(f finding) error {
	style := d.env.Style()
	paint := map[string]func(string) string{ok: style.Good, warn: style.Warn, fail: style.Bad}[f.Status]
	text := strings.ReplaceAll(f.Message, "\n", "; ")
	if f.Next != "" {
		text = strings.TrimRight(text, ".") + ". " + strings.ReplaceAll(f.Next, "\n", "; ")
	}
	if d.linked {
		text = d.env.WithLinks(text)
	}
	return d.env.Printf("%s  %-14s %s\n", paint(fmt.Sprintf("%-4s", f.Status)), f.Check, text)
}
