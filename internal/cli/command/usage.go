package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/hint"
)

// UsageError is the error of an invalid command line, in contrast to a command that failed.
type UsageError struct {
	command string
	err     error
}

// Error returns the text of the error.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the error that Usagef formatted.
func (e *UsageError) Unwrap() error { return e.err }

// Hint refers the user to the command's help.
func (e *UsageError) Hint() string { return fmt.Sprintf("Run '%s --help' for its usage.", e.command) }

// Usagef returns the error of an invalid command line.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// NoArgs rejects all arguments.
func NoArgs(cmd *cobra.Command, args []string) error { return MaxArgs(0)(cmd, args) }

// MaxArgs rejects more than n arguments.
func MaxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) <= n:
			return nil
		case cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		default:
			return Usagef(cmd, "unexpected argument %q", args[n])
		}
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	const maxTypos = 2 // edit distance in letters
	cmd.SuggestionsMinimumDistance = maxTypos
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return hint.Add(Usagef(cmd, "unknown command %q", name), "Did you mean '%s %s'?", cmd.CommandPath(), near[0])
	}
	return Usagef(cmd, "unknown command %q", name)
}

// OneArg requires one argument, which what describes.
func OneArg(what string) cobra.PositionalArgs { return Args(0, what) }

// Any is the number of optional arguments of a command that accepts any number.
const Any = 1 << 30

// Args requires one argument for each description, and accepts optional ones after them.
func Args(optional int, what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(what) {
			return Usagef(cmd, "argument is missing: %s", strings.Join(what[len(args):], ", "))
		}
		return MaxArgs(len(what)+optional)(cmd, args)
	}
}

// Help prints the command's help. It is the RunE of commands that only have subcommands.
func Help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// timeoutError is an error that errors.Is matches with context.DeadlineExceeded.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string        { return e.text }
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeoutf returns the error of an operation that did not finish in time.
func Timeoutf(format string, args ...any) error { return &timeoutError{fmt.Sprintf(format, args...)} }

// SilentExit is an outcome that is reported by the exit code only.
type SilentExit struct{ Code int }

// Error implements error. Package cli does not print it.
func (q SilentExit) Error() string { return fmt.Sprintf("exit code %d", q.Code) }

// ExitSilently makes a command exit with a code and without a message.
func ExitSilently(code int) error { return SilentExit{code} }
