package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/cli/output"
)

// withoutJSON lists the commands without -o json, with the reason.
var withoutJSON = map[string]string{
	"freshet serve":               "runs until it is stopped; --log-format json is the format of its log",
	"freshet auth exec":           "prints an ExecCredential, the JSON that kubectl reads",
	"freshet cheat":               "prints a page for people",
	"freshet completion":          "prints a script of a shell",
	"freshet generate completion": "prints a script of a shell",
	"freshet generate systemd":    "prints a unit file, which has one format",
	"freshet schema export":       "prints lines of JSON, which import reads",
}

// TestCommandsKnowJSON checks that every command knows -o json, unless withoutJSON has a reason, and
// that those with YAML have JSON too.
func TestCommandsKnowJSON(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, cmd := range allCommands(t) {
		if isFolder(cmd) {
			continue
		}
		path := cmd.CommandPath()
		reason, excepted := withoutJSON[path]
		knows := slices.Contains(output.Formats(cmd.Flags()), string(output.FormatJSON))
		switch {
		case knows && excepted:
			t.Errorf("%s knows -o json; remove it from withoutJSON", path)
		case !knows && !excepted:
			t.Errorf("%s does not know -o json", path)
		case excepted && len(strings.Fields(reason)) < 4:
			t.Errorf("%s: %q is not a reason", path, reason)
		}
		found[path] = true
	}
	for path := range withoutJSON {
		if !found[path] {
			t.Errorf("%s is not a command", path)
		}
	}
}

// TestOutputHasOneMeaning checks that -o and --output are the format of the output in every command, and that no
// command has another flag for it.
func TestOutputHasOneMeaning(t *testing.T) {
	t.Parallel()
	for _, cmd := range allCommands(t) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			isFormat := f.Name == "output" && output.Formats(cmd.Flags()) != nil
			switch {
			case isFormat && f.Shorthand != "o":
				t.Errorf("%s: --output has no short form -o", cmd.CommandPath())
			case !isFormat && (f.Name == "output" || f.Shorthand == "o"):
				t.Errorf("%s: --%s is not the format of the output", cmd.CommandPath(), f.Name)
			case f.Name == "format" || f.Name == "json" || f.Name == "yaml":
				t.Errorf("%s: --%s is another name of --output", cmd.CommandPath(), f.Name)
			}
		})
	}
}

// isFolder reports whether a command only prints its help: it has commands below it and takes no arguments.
func isFolder(cmd *cobra.Command) bool {
	return cmd.HasSubCommands() && len(strings.Fields(cmd.Use)) == 1
}
