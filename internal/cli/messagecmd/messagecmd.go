// Package messagecmd implements the commands for messages: topics, producing, consuming,
// subscriptions, dead letters, and Kafka consumer groups. The commands use only the public
// package client.
//
// Locks: runner.mu protects the counters and the idle timer of consume --exec, and
// serializes the output of its commands; sendState.mu protects the counters of produce and
// its progress line. No function takes both.
package messagecmd

import (
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(env *command.Env) []*cobra.Command {
	commands := []*cobra.Command{
		newTopic(env), newProduce(env), newConsume(env), newTail(env), newSearch(env),
		newTenant(env), newNamespace(env),
		newSubscription(env), newAck(env), newNack(env), newDeadLetter(env), newGroup(env),
	}
	nameMissingObjects(commands...)
	return command.InSection(command.SectionMessages, commands...)
}

// position parses the value of a flag as a position in a topic.
func position(cmd *cobra.Command, flag, text string) (client.Position, error) {
	at, err := client.ParsePosition(text)
	if err != nil {
		return at, command.Usagef(cmd, "--%s: %w", flag, err)
	}
	return at, nil
}

// pairs parses values of the form name=value.
func pairs(cmd *cobra.Command, flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(list))
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, command.Usagef(cmd, "--%s value %q is not of the form name=value", flag, text)
		}
		all[name] = value
	}
	return all, nil
}

// completeTopics completes the first argument with the names of topics, and the second with
// those of the topic's subscriptions.
func completeTopics(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := env.ClusterClient(cmd.Context())
		if err != nil || len(given) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		if len(given) == 1 {
			names, _ := c.Topic(given[0]).Subscriptions(cmd.Context()) // none after an error
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		topics, _ := listTopics(cmd.Context(), c, "") // none after an error
		var names []cobra.Completion
		for _, t := range topics {
			if !t.Internal {
				names = append(names, t.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
