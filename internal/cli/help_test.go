package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/cli/command"
)

// allCommands returns every command that the help lists.
func allCommands(t *testing.T) []*cobra.Command {
	t.Helper()
	var list []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		list = append(list, cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&command.Env{Getenv: func(string) string { return "" }}, nil))
	return list
}

// TestHelpPromisesNoMissingFeatures checks that no help text mentions what the server does not do:
// it accepts cleanup.policy=compact but does not compact topics (docs/howto/stream.md), so a message
// without a value deletes nothing.
func TestHelpPromisesNoMissingFeatures(t *testing.T) {
	t.Parallel()
	missing := regexp.MustCompile(`(?i)\bcompact|as a deletion|tombstone for`)
	for _, cmd := range allCommands(t) {
		text := cmd.Short + "\n" + cmd.Long + "\n" + cmd.Example + "\n" + cmd.Flags().FlagUsages()
		if match := missing.FindString(text); match != "" {
			t.Errorf("the help of %s promises %q", cmd.CommandPath(), match)
		}
	}
}

// TestMetavariables checks that the help names the values of flags by what they are, in capital
// letters, and not by their types or by one of their values.
func TestMetavariables(t *testing.T) {
	t.Parallel()
	for _, cmd := range allCommands(t) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			if f.Hidden {
				return
			}
			switch name {
			case "string", "strings", "int", "int64", "stringArray", "stringToString", "registry", "lines",
				"none or server":
				t.Errorf("%s --%s has the metavariable %s", cmd.CommandPath(), f.Name, name)
			}
		})
		usage := flagUsages(cmd.LocalFlags())
		for line := range strings.Lines(usage) {
			if match := regexp.MustCompile(`^\s+(-\w, )?--[a-z-]+ ([^ ]+)   `).FindStringSubmatch(line); match != nil &&
				match[2] != strings.ToUpper(match[2]) {
				t.Errorf("%s: %q, want the value in capital letters", cmd.CommandPath(), line)
			}
		}
	}
}
