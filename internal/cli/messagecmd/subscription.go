package messagecmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newSubscription(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "subscription",
		Aliases: []string{"subscriptions", "sub"},
		Short:   "Create, list, move, look into and delete subscriptions",
		Long: `Create, list, move, look into and delete subscriptions. A subscription remembers
what its readers have dealt with: each message goes to one of them, and again until
it is acknowledged.`,
		Example: `  # one that gets everything from the beginning
  freshet subscription create orders audit --from earliest

  # how far is everybody?
  freshet subscription list orders

  # once more from an hour ago
  freshet subscription reset orders billing --to 1h`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newSubscriptionCreate(env), newSubscriptionList(env), newSubscriptionReset(env),
		newSubscriptionPeek(env), newSubscriptionDelete(env))
	return cmd
}

func newSubscriptionCreate(env *command.Env) *cobra.Command {
	var from, deadLetters string
	var timeout time.Duration
	var maxRedeliver int
	var ifNotExists bool
	cmd := &cobra.Command{
		Use:   "create TOPIC NAME",
		Short: "Create a subscription",
		Long: `Create a subscription. It gets what is produced from now on, unless --from says
otherwise. The topic is made, too, where there is none and its namespace allows it.`,
		Example: `  # from now on
  freshet subscription create orders shipping

  # from the beginning, with leases of five minutes
  freshet subscription create orders audit --from earliest --ack-timeout 5m

  # give up on a message after three more attempts
  freshet subscription create orders invoices --max-redeliver 3 --dead-letter-topic orders-failed`,
		Args:              args("the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			at, err := position(cmd, "from", from)
			if err != nil {
				return err
			}
			options := client.SubscriptionOptions{From: at, AckTimeout: timeout, DeadLetterTopic: deadLetters}
			if cmd.Flags().Changed("max-redeliver") {
				options.MaxRedeliver = &maxRedeliver
			} else if deadLetters != "" {
				return command.Usagef(cmd, "--dead-letter-topic needs --max-redeliver")
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			sub := c.Topic(given[0]).Subscription(given[1])
			err = sub.Create(cmd.Context(), options)
			if errors.Is(err, client.ErrConflict) && ifNotExists {
				_, err = fmt.Fprintf(env.Out, "subscription %s is there already\n", given[1])
				return err
			}
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "'freshet subscription reset' moves it; --if-not-exists makes this no error.")
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Out, "subscription %s of %s created\n", given[1], sub.Topic().ShortName())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "latest",
		"where to begin: earliest, latest, a time, a duration ago or a message `position`")
	f.DurationVar(&timeout, "ack-timeout", 0, "lease of its messages, 1s to 12h; 30s when not given")
	f.IntVar(&maxRedeliver, "max-redeliver", 0,
		"move a message that was delivered this `number` of times again to the dead letters")
	f.StringVar(&deadLetters, "dead-letter-topic", "", "`topic` for dead letters; TOPIC-NAME-DLQ when not given")
	f.BoolVar(&ifNotExists, "if-not-exists", false, "a subscription that is there already is no error")
	return cmd
}

func newSubscriptionList(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list TOPIC",
		Aliases: []string{"ls"},
		Short:   "List the subscriptions of a topic, and how far they are",
		Example: `  # how far is everybody?
  freshet subscription list orders

  # names alone, for scripts
  freshet subscription list orders -o name

  # all numbers
  freshet subscription list orders -o json`,
		Args:              args("the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			if format == output.FormatName { // who may list need not see statistics
				names, err := c.Topic(given[0]).Subscriptions(cmd.Context())
				for _, name := range names {
					if _, err := fmt.Fprintln(env.Out, name); err != nil {
						return err
					}
				}
				return err
			}
			stats, err := c.Topic(given[0]).Stats(cmd.Context())
			if err != nil {
				return err
			}
			return printSubscriptions(env, format, stats.Subscriptions)
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

func printSubscriptions(env *command.Env, format output.Format, all map[string]client.SubscriptionStats) error {
	if format != output.FormatTable {
		return output.Value(env.Out, format, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(env.Err, "No subscriptions. 'freshet subscription create TOPIC NAME' makes one.")
		return err
	}
	table := output.Table{Columns: output.Columns("Name", "Backlog", "Bytes", "Leased", "Delayed", "Waiting", "Acks/s")}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		table.Rows = append(table.Rows, []string{
			name, number(s.Backlog), bytesWord(s.BacklogBytes), number(s.Leased), number(s.Delayed),
			strconv.Itoa(s.Waiting), fmt.Sprintf("%.1f", s.AckRate),
		})
	}
	return table.Write(env.Out)
}

func newSubscriptionReset(env *command.Env) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "reset TOPIC NAME --to POSITION",
		Short: "Move a subscription",
		Long: `Move a subscription: what is before the position counts as acknowledged, what is
from it on is delivered, again where it was before. Leases end.`,
		Example: `  # everything once more
  freshet subscription reset orders billing --to earliest

  # skip what is there
  freshet subscription reset orders billing --to latest

  # once more from an hour ago
  freshet subscription reset orders billing --to 1h`,
		Args:              args("the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if to == "" {
				return command.Usagef(cmd,
					"say where to: --to earliest, latest, a time, a duration ago or a message id")
			}
			at, err := position(cmd, "to", to)
			if err != nil {
				return err
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			sub := c.Topic(given[0]).Subscription(given[1])
			if err := sub.Reset(cmd.Context(), at); err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Out, "subscription %s of %s moved to %s\n", given[1], sub.Topic().ShortName(), to)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "where to: earliest, latest, a time, a duration ago or a message `position`")
	return cmd
}

func newSubscriptionPeek(env *command.Env) *cobra.Command {
	var o printOptions
	var count int
	cmd := &cobra.Command{
		Use:   "peek TOPIC NAME",
		Short: "Show messages that are not acknowledged, without taking them",
		Example: `  # the next ten of each partition
  freshet subscription peek orders billing

  # the very next, with its key and time
  freshet subscription peek orders billing --count 1 -o json

  # times and ids
  freshet subscription peek orders billing -o wide`,
		Args:              args("the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if count < 1 {
				return command.Usagef(cmd, "--count must be at least 1")
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			topic := c.Topic(given[0])
			p, err := o.printer(cmd, env, c, topic)
			if err != nil {
				return err
			}
			messages, err := topic.Subscription(given[1]).Peek(cmd.Context(), count)
			if err != nil {
				return err
			}
			for i := range messages {
				if err := p.print(cmd.Context(), &messages[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&count, "count", "c", 10, "at most this `number` of messages of each partition")
	o.addFlags(cmd)
	return cmd
}

func newSubscriptionDelete(env *command.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "delete TOPIC NAME",
		Aliases: []string{"rm"},
		Short:   "Delete a subscription",
		Example: `  # one that nobody reads from at the moment
  freshet subscription delete orders audit

  # readers or not
  freshet subscription delete orders billing --force

  # which were they?
  freshet subscription list orders -o name`,
		Args:              args("the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			sub := c.Topic(given[0]).Subscription(given[1])
			err := sub.Delete(cmd.Context(), force)
			if errors.Is(err, client.ErrInvalid) && !force {
				return hint.Add(err, "--force deletes it with its readers.")
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Out, "subscription %s of %s deleted\n", given[1], sub.Topic().ShortName())
			return err
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when somebody consumes from it")
	return cmd
}
