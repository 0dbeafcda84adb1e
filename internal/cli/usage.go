package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/cli/command"
)

// usage prints the part of a help text that follows the description: the usage line, the
// examples, the subcommands and the flags. It omits the flags that choose a server for
// commands that do not connect to one.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && !cmd.HasSubCommands() || cmd.Runnable() && strings.Contains(cmd.Use, " ") {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, section := range cmd.Groups() {
		listCommands(&b, cmd, section.Title, section.ID)
	}
	title := "Commands:"
	if len(cmd.Groups()) > 0 {
		title = "More:"
	}
	listCommands(&b, cmd, title, "")
	if cmd.HasAvailableLocalFlags() {
		flags := cmd.LocalFlags()
		if !cmd.HasParent() {
			flags = cmd.LocalNonPersistentFlags()
		}
		if flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\nFlags:\n%s", flagUsages(flags))
		}
	}
	switch {
	case !cmd.HasParent():
		fmt.Fprintf(&b, "\nFlags of every command that connects to a server:\n%s", flagUsages(cmd.PersistentFlags()))
	case !command.IsOffline(cmd) && cmd.HasAvailableInheritedFlags():
		fmt.Fprintf(&b, "\nFlags that choose a server:\n%s", flagUsages(cmd.InheritedFlags()))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun '%s COMMAND --help' for the help of a command.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}

// listCommands prints the subcommands of a section, or nothing if the section has none.
func listCommands(b *strings.Builder, cmd *cobra.Command, title, id string) {
	var lines []string
	for _, sub := range cmd.Commands() {
		if sub.GroupID == id && sub.IsAvailableCommand() {
			lines = append(lines, fmt.Sprintf("  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s\n%s", title, strings.Join(lines, ""))
	}
}

// flagUsages lists flags with the names of their values in capital letters, as in usage lines.
func flagUsages(flags *pflag.FlagSet) string {
	var left, right []string
	width := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		value, usage := pflag.UnquoteUsage(f)
		value = strings.ToUpper(strings.ReplaceAll(value, " ", "-"))
		switch {
		case value != "" && f.NoOptDefVal != "":
			name += "[=" + value + "]"
		case value != "":
			name += " " + value
		}
		switch f.DefValue {
		case "", "0", "0s", "false", "[]", "none":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		left, right, width = append(left, name), append(right, usage), max(width, len(name))
	})
	var b strings.Builder
	for i := range left {
		fmt.Fprintf(&b, "%-*s   %s\n", width, left[i], right[i])
	}
	return b.String()
}
