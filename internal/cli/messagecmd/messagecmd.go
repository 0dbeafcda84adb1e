// Package messagecmd has the commands about messages: topics, producing,
// consuming, subscriptions, dead letters, and the consumer groups of the stream
// protocol. They do what package client can do and nothing else.
package messagecmd

import (
	"strings"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/cli/command"
)

// Commands makes the family.
func Commands(env *command.Env) []*cobra.Command {
	return command.InGroup(command.GroupMessages,
		newTopic(env), newProduce(env), newConsume(env), newTail(env),
		newSubscription(env), newAck(env), newNack(env), newDeadLetter(env), newGroup(env))
}

// args demands arguments and says what they are.
func args(what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) < len(what) {
			return command.Usagef(cmd, "say what to use: %s", strings.Join(what[len(given):], ", "))
		}
		return command.AtMost(len(what))(cmd, given)
	}
}

// argsAndMore demands arguments, the last of them at least once.
func argsAndMore(what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) < len(what) {
			return command.Usagef(cmd, "say what to use: %s", strings.Join(what[len(given):], ", "))
		}
		return nil
	}
}

// position reads a flag that says where in a topic.
func position(cmd *cobra.Command, flag, text string) (client.Position, error) {
	at, err := client.ParsePosition(text)
	if err != nil {
		return at, command.Usagef(cmd, "--%s: %w", flag, err)
	}
	return at, nil
}

// pairs reads flags of the form name=value.
func pairs(cmd *cobra.Command, flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(list))
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, command.Usagef(cmd, "--%s %q is not of the form name=value", flag, text)
		}
		all[name] = value
	}
	return all, nil
}

// completeTopics offers the names of topics for a first argument.
func completeTopics(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := env.ClusterClient(cmd.Context())
		if err != nil || len(given) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		if len(given) == 1 {
			names, err := c.Topic(given[0]).Subscriptions(cmd.Context())
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		topics, err := c.Topics(cmd.Context(), "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, t := range topics {
			if !t.Internal {
				names = append(names, t.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
