// Package reference renders the help texts of the commands as Markdown, as man pages, and
// as data for JSON. It generates the checked-in reference in docs/reference/cli.
package reference

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/cli/command"
)

// Command is one command, as its help describes it.
type Command struct {
	Path     string   `json:"path"` // freshet context list
	Use      string   `json:"use"`  // freshet context list [flags]
	Aliases  []string `json:"aliases,omitempty"`
	Short    string   `json:"short"`
	Long     string   `json:"long,omitempty"`
	Examples string   `json:"examples,omitempty"`
	// Connects reports whether the command takes the flags that choose a server.
	Connects bool     `json:"connects"`
	Flags    []Flag   `json:"flags,omitempty"`
	Commands []string `json:"commands,omitempty"` // paths of the subcommands
}

// Flag is one flag.
type Flag struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Value     string `json:"value,omitempty"` // name of its value, "" for a boolean flag
	Default   string `json:"default,omitempty"`
	Usage     string `json:"usage"`
}

// Tree lists a command and its subcommands, without hidden ones, in the order of the help.
func Tree(cmd *cobra.Command) []Command {
	list := []Command{describe(cmd)}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			list[0].Commands = append(list[0].Commands, sub.CommandPath())
			list = append(list, Tree(sub)...)
		}
	}
	return list
}

func describe(cmd *cobra.Command) Command {
	c := Command{
		Path: cmd.CommandPath(), Use: cmd.UseLine(), Aliases: cmd.Aliases, Short: cmd.Short, Long: cmd.Long,
		Examples: strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"),
		Connects: !command.IsOffline(cmd),
	}
	flags := cmd.LocalFlags()
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		entry := Flag{Name: f.Name, Shorthand: f.Shorthand, Value: value, Usage: usage}
		if f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			entry.Default = f.DefValue
		}
		c.Flags = append(c.Flags, entry)
	})
	return c
}

// fileName returns the file name of a command's page, without the extension.
func fileName(path string) string { return strings.ReplaceAll(path, " ", "-") }
