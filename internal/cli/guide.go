package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
)

// guides are the pages of the documentation about the families of commands.
var guides = map[string]string{
	"ack": "docs/howto/leases.md", "nack": "docs/howto/leases.md", "dead-letter": "docs/howto/leases.md",
	"consume": "docs/howto/messages.md", "produce": "docs/howto/messages.md", "tail": "docs/howto/messages.md",
	"topic": "docs/howto/messages.md", "subscription": "docs/howto/messages.md",
	"namespace": "docs/howto/messages.md", "tenant": "docs/howto/messages.md",
	"schema": "docs/howto/schemas.md", "group": "docs/howto/stream.md#how-far-is-a-group",
	"apikey": "docs/howto/api-keys.md", "sa": "docs/howto/api-keys.md",
	"grant": "docs/howto/roles.md", "ungrant": "docs/howto/roles.md", "can-i": "docs/howto/roles.md",
	"login": "docs/howto/sign-in.md", "logout": "docs/howto/sign-in.md", "user": "docs/howto/sign-in.md",
	"org": "docs/howto/clusters.md", "admin": "docs/howto/secrets.md",
	"backup": "docs/howto/backup.md", "restore": "docs/howto/backup.md",
	"ensemble": "docs/howto/ensemble.md", "migrate": "docs/howto/ensemble.md",
	"check": "docs/howto/damage.md", "serve": "docs/howto/operate.md", "config": "docs/reference/configuration.md",
}

// defaultGuide is the page for all other commands.
const defaultGuide = "docs/howto/cli.md"

// guideFor returns the page about an error of a command.
func guideFor(cmd *cobra.Command, err error) string {
	switch {
	case errors.Is(err, client.ErrQuota):
		return "docs/spec/resources.md#quotas"
	case errors.Is(err, client.ErrDenied):
		return "docs/howto/roles.md"
	case errors.Is(err, client.ErrUnauthenticated):
		return "docs/howto/sign-in.md"
	}
	words := strings.Fields(cmd.CommandPath())
	if len(words) > 1 && guides[words[1]] != "" {
		return guides[words[1]]
	}
	return defaultGuide
}

// advice returns the lines below the message of an error: the hint, and the page of the documentation about it,
// as a URL if the server responds. The hint of an invalid command line names the help instead.
func advice(env *command.Env, cmd *cobra.Command, err error) string {
	line := hintFor(err)
	if line == "" {
		return ""
	}
	var usage *command.UsageError
	if !errors.As(err, &usage) && !strings.Contains(line, "docs/") {
		line += "\nDocumentation: " + guideFor(cmd, err)
	}
	return linked(env, cmd, err, line)
}

// linked replaces the pages that a text about an error names by their URLs, if the server responds.
func linked(env *command.Env, cmd *cobra.Command, err error, text string) string {
	var response *client.Error
	if command.IsOffline(cmd) || errors.Is(err, client.ErrUnavailable) && !errors.As(err, &response) {
		return text
	}
	return env.WithLinks(text)
}
