package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"freshet/internal/cli/hint"
)

// UsageError is a command line that makes no sense, as opposed to one that could
// not be carried out.
type UsageError struct {
	command string
	err     error
}

// Error says what is wrong.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns what Usagef wrapped, if anything.
func (e *UsageError) Unwrap() error { return e.err }

// Hint leads to the command's help.
func (e *UsageError) Hint() string {
	return fmt.Sprintf("Run '%s --help' for what it takes.", e.command)
}

// Usagef makes the error of a command line that makes no sense.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// NoArgs refuses every argument.
func NoArgs(cmd *cobra.Command, args []string) error { return AtMost(0)(cmd, args) }

// AtMost refuses more than n arguments.
func AtMost(n int) cobra.PositionalArgs {
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
	const slips = 2 // letters
	cmd.SuggestionsMinimumDistance = slips
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return hint.Add(Usagef(cmd, "unknown command %q", name), "Did you mean '%s %s'?", cmd.CommandPath(), near[0])
	}
	return Usagef(cmd, "unknown command %q", name)
}

// One demands one argument, and says what it is.
func One(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef(cmd, "say what to use: %s", what)
		}
		return AtMost(1)(cmd, args)
	}
}

// Help is what a command does that is only the name of a family.
func Help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// timeout is what did not happen in time.
type timeout struct{ text string }

func (e *timeout) Error() string        { return e.text }
func (e *timeout) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeoutf makes the error of something that did not happen in time.
func Timeoutf(format string, args ...any) error { return &timeout{fmt.Sprintf(format, args...)} }

// Quiet is an outcome that the exit code alone tells.
type Quiet struct{ Code int }

// Error is for programs that print it all the same.
func (q Quiet) Error() string { return fmt.Sprintf("exit code %d", q.Code) }

// Quietly makes a command end with an exit code, and nothing more said.
func Quietly(code int) error { return Quiet{code} }
