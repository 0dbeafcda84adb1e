package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// TestAdvice checks the lines below errors: each hint has a page of the documentation, as a URL if the server
// responds.
func TestAdvice(t *testing.T) {
	t.Parallel()
	env := &command.Env{Getenv: func(name string) string {
		return map[string]string{"FRESHET_SERVER": "https://h:1/"}[name]
	}}
	root := newRoot(env, nil)
	for name, c := range map[string]struct {
		command string
		err     error
		want    string
	}{
		"of a family": {
			"schema list", hint.Add(fmt.Errorf("x"), "Do y."),
			"Do y.\nDocumentation: https://h:1/docs/howto/schemas.html",
		},
		"with an anchor": {
			"group list", hint.Add(fmt.Errorf("x"), "Do y."),
			"Do y.\nDocumentation: https://h:1/docs/howto/stream.html#how-far-is-a-group",
		},
		"of another command": {
			"get", hint.Add(fmt.Errorf("x"), "Do y."),
			"Do y.\nDocumentation: https://h:1/docs/howto/cli.html",
		},
		"in the hint": {
			"get", hint.Add(fmt.Errorf("x"), "See docs/howto/damage.md."),
			"See https://h:1/docs/howto/damage.html.",
		},
		"no hint": {"get", fmt.Errorf("x"), ""},
		"no server": {
			"topic list", hint.Add(client.ErrUnavailable, "Wait."),
			"Wait.\nDocumentation: docs/howto/messages.md",
		},
		"busy server": {
			"topic list", hint.Add(&client.Error{Status: 503}, "Wait."),
			"Wait.\nDocumentation: https://h:1/docs/howto/messages.html",
		},
		"usage": {
			"topic list", hint.Add(command.Usagef(root, "x"), "Run help."),
			"Run help.",
		},
	} {
		cmd, _, err := root.Find(strings.Fields(c.command))
		if err != nil {
			t.Fatal(err)
		}
		if got := advice(env, cmd, c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestGuides checks that every page of the table exists, and that every key is a command.
func TestGuides(t *testing.T) {
	t.Parallel()
	root := newRoot(&command.Env{Getenv: func(string) string { return "" }}, nil)
	for family, page := range guides {
		if cmd, _, err := root.Find([]string{family}); err != nil || cmd == root {
			t.Errorf("%s is not a command", family)
		}
		file, _, _ := strings.Cut(page, "#")
		if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
			t.Error(err)
		}
	}
}
