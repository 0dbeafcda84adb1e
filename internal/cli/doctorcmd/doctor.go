// Package doctorcmd has the command that finds out why a server or a connection
// does not work. It looks at the machine of a server (configuration, data directory,
// disk, addresses, etcd, the other members) when that is this one, and asks the server what any client
// may ask. It changes nothing.
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

// Formats says whether the data directory was written by an older version; one that
// this version cannot read is an error.
type Formats func(dir string) (older bool, err error)

// LookAtLog looks at the NATS servers of a configuration, and changes nothing there: what
// they are, what about them must not be, and what should not.
type LookAtLog func(ctx context.Context, cfg *config.Config) (is string, wrong, unsure []string, err error)

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
	// Next is what to do about it.
	Next string `json:"next,omitempty"`
}

// report is everything that was found.
type report struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

// doctor is one run.
type doctor struct {
	env     *command.Env
	formats Formats
	log     LookAtLog
	file    string // of the configuration
	tell    func(finding) error

	report report
	err    error // of printing

	config *config.Config // of the server on this machine; nil when it is another
	listen bool           // the server on this machine runs
	at     contexts.Context
	stream bool // the listener of the stream protocol has been looked at
}

// Commands makes the family.
func Commands(env *command.Env, formats Formats, log LookAtLog) []*cobra.Command {
	return command.InGroup(command.GroupServer, newDoctor(env, formats, log))
}

func newDoctor(env *command.Env, formats Formats, log LookAtLog) *cobra.Command {
	d := &doctor{env: env, formats: formats, log: log}
	var format output.Format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what is wrong with a server or a connection",
		Long: `Find out what is wrong with a server or a connection. Every check is one line: ok,
warn or FAIL, and what to do next. Nothing is changed.

On the machine of a server it looks at the configuration, the data directory (format,
permissions, lock), the disk, the addresses, etcd, NATS servers of your own (version,
JetStream, size of messages, whether they sync every write), and the other members of a
group with their etcd and log (NATS). Of any server it checks the certificate, the clock, the health,
the version, your token, your roles, and each surface: resources, messages, schemas, the
stream protocol, the console.

The exit code is 0 when nothing failed, and 1 otherwise.`,
		Example: `  # the server of ./freshet-data, or that of the current context
  freshet doctor

  # before a first start: would it start with this configuration?
  freshet doctor --config freshet.yaml

  # as an application sees it, for a script
  freshet doctor --server $SERVER --ca-file freshet-data/tls/ca.crt --token-file freshet-data/admin.token -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return d.run(ctx, format)
		},
	}
	cmd.Flags().StringVar(&d.file, "config", "", "configuration `file` of the server on this machine (YAML)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long all checks together may take")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func (d *doctor) run(ctx context.Context, format output.Format) error {
	d.report = report{OK: true, Checks: []finding{}}
	d.tell = func(finding) error { return nil }
	if format == output.FormatText {
		d.tell = d.printLine
	}
	d.examine(ctx)
	if d.err == nil && format != output.FormatText {
		d.err = output.Value(d.env.Out, format, d.report)
	}
	if d.err != nil {
		return d.err
	}
	if !d.report.OK {
		return command.Quietly(1)
	}
	return nil
}

// examine does all checks, from what is below to what needs it.
func (d *doctor) examine(ctx context.Context) {
	at, err := d.env.Context()
	d.at = at
	// A context that names another server says nothing about this machine.
	if d.file != "" || err != nil || at.Name == contexts.LocalName {
		if !d.machine(ctx) && (err != nil || at.Name == contexts.LocalName) {
			return
		}
	}
	if err != nil {
		d.failed("connection", err.Error(), "Start a server with 'freshet serve', or sign in to one with 'freshet "+
			"login'; 'freshet context list' shows what you have.")
		return
	}
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
	if err := d.tell(f); d.err == nil {
		d.err = err
	}
}

func (d *doctor) good(check, format string, args ...any) {
	d.add(finding{Check: check, Status: ok, Message: fmt.Sprintf(format, args...)})
}

func (d *doctor) warned(check, message, next string) { d.add(finding{check, warn, message, next}) }
func (d *doctor) failed(check, message, next string) { d.add(finding{check, fail, message, next}) }

func (d *doctor) printLine(f finding) error {
	style := d.env.Style()
	paint := map[string]func(string) string{ok: style.Good, warn: style.Warn, fail: style.Bad}[f.Status]
	text := strings.ReplaceAll(f.Message, "\n", "; ")
	if f.Next != "" {
		text = strings.TrimRight(text, ".") + ". " + strings.ReplaceAll(f.Next, "\n", "; ")
	}
	_, err := fmt.Fprintf(d.env.Out, "%s  %-14s %s\n", paint(fmt.Sprintf("%-4s", f.Status)), f.Check, text)
	return err
}
