package messagecmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newSubscription(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:     "subscription",
		Aliases: []string{"subscriptions", "sub"},
		Short:   "Create, list, update, reset, peek into and delete subscriptions",
		Long: `Create, list, update, reset, peek into and delete subscriptions. A subscription records which
messages its consumers have acknowledged. It delivers each message to one of them, and
redelivers it until it is acknowledged.`,
		Example: `  # create a subscription that starts at the beginning
  freshet subscription create orders audit --from earliest

  # list subscriptions with their backlogs
  freshet subscription list orders

  # go back by one hour
  freshet subscription reset orders billing --to 1h`,
	}, newSubscriptionCreate(env), newSubscriptionList(env), newSubscriptionUpdate(env),
		newSubscriptionReset(env), newSubscriptionPeek(env), newSubscriptionDelete(env))
}

func newSubscriptionCreate(env *command.Env) *cobra.Command {
	var from, deadLetters, filter string
	var timeout time.Duration
	var maxRedeliver int
	var ifNotExists, createTopic bool
	cmd := &cobra.Command{
		Use:   "create TOPIC NAME",
		Short: "Create a subscription",
		Long: `Create a subscription. It receives the messages that are produced from now on, or from
the position of --from. With --create-topic, a missing topic is created too, if its
namespace allows it.

With --filter it receives only the messages that an expression selects, such as
'payload.total > 100 && key.startsWith("k")'. The server acknowledges the others. A
message for which the expression fails, for example because it has no field total, is
received: has(payload.total) tests whether it has.`,
		Example: `  # messages from now on
  freshet subscription create orders shipping

  # from the beginning, with leases of five minutes
  freshet subscription create orders audit --from earliest --ack-timeout 5m

  # only some of the messages
  freshet subscription create orders large --filter 'payload.total > 100'

  # move a message to the dead letters after three redeliveries
  freshet subscription create orders invoices --max-redeliver 3 --dead-letter-topic orders-failed`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			at, err := position(cmd, "from", from)
			if err != nil {
				return err
			}
			options := client.SubscriptionOptions{
				From: at, AckTimeout: timeout, DeadLetterTopic: deadLetters, Filter: filter,
			}
			if cmd.Flags().Changed("max-redeliver") {
				options.MaxRedeliver = &maxRedeliver
			} else if deadLetters != "" {
				return command.Usagef(cmd, "--dead-letter-topic requires --max-redeliver")
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if !createTopic {
				if err := requireTopic(cmd.Context(), c, given[0]); err != nil {
					return err
				}
			}
			sub := c.Topic(given[0]).Subscription(given[1])
			err = sub.Create(cmd.Context(), options)
			if errors.Is(err, client.ErrConflict) && ifNotExists {
				return env.Done(command.Result{Kind: "subscription", Name: given[1], Action: "exists"},
					"subscription %s already exists", given[1])
			}
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "Change its position with 'freshet subscription reset'; --if-not-exists ignores "+
					"this error.")
			}
			if err != nil {
				return err
			}
			return env.Done(command.Result{Kind: "subscription", Name: given[1], Action: "created"},
				"subscription %s of %s created", given[1], sub.Topic().ShortName())
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "latest",
		"first `position`: earliest, latest, a time, a duration ago or a message id")
	f.DurationVar(&timeout, "ack-timeout", 0, "lease of its messages, 1s to 12h (default 30s)")
	f.IntVar(&maxRedeliver, "max-redeliver", 0,
		"`number` of redeliveries after which a message becomes a dead letter (default: no limit)")
	f.StringVar(&deadLetters, "dead-letter-topic", "", "`topic` for dead letters (default: TOPIC-NAME-DLQ)")
	f.StringVar(&filter, "filter", "", "receive only messages that this `expression` selects")
	f.BoolVar(&ifNotExists, "if-not-exists", false, "succeed if the subscription already exists")
	f.BoolVar(&createTopic, "create-topic", false, "create the topic if it does not exist")
	return cmd
}

func newSubscriptionList(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list TOPIC",
		Aliases: []string{"ls"},
		Short:   "List the subscriptions of a topic and their backlogs",
		Long: `List the subscriptions of a topic and their backlogs. With a permission to list the subscriptions, but
none to see the statistics of the topic, the list has only their names.`,
		Example: `  # with their backlogs
  freshet subscription list orders

  # names only, for scripts
  freshet subscription list orders -o name

  # all statistics
  freshet subscription list orders -o json`,
		Args:              command.OneArg("the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			list, err := listSubscriptions(cmd.Context(), c.Topic(given[0]))
			if err != nil {
				return err
			}
			table := subscriptionTable(list)
			if len(list) > 0 && list[0].subscriptionStats == nil && format == output.FormatTable {
				const note = "You may not see the statistics of topic %s, only the names of its subscriptions.\n"
				if err := env.Notef(note, given[0]); err != nil {
					return err
				}
			}
			return env.List(format, list, &table,
				"No subscriptions. Create one with 'freshet subscription create TOPIC NAME'.")
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

// listSubscriptions lists the subscriptions of a topic in the order of their names. A caller who may not see the
// topic's statistics gets the entries without them. It does the same for every format, so that all formats need the
// same permissions.
func listSubscriptions(ctx context.Context, topic *client.Topic) ([]subscriptionEntry, error) {
	list := []subscriptionEntry{}
	stats, denied := topic.Stats(ctx)
	if denied == nil {
		for _, name := range slices.Sorted(maps.Keys(stats.Subscriptions)) {
			list = append(list, newSubscriptionEntry(name, stats.Subscriptions[name]))
		}
		return list, nil
	}
	if !errors.Is(denied, client.ErrDenied) {
		return nil, denied
	}
	names, err := topic.Subscriptions(ctx)
	if errors.Is(err, client.ErrDenied) {
		return nil, denied
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, subscriptionEntry{Name: name})
	}
	return list, err
}

// subscriptionTable returns the table of a list, with names only if the entries have no statistics.
func subscriptionTable(list []subscriptionEntry) output.Table {
	table := output.Table{
		Columns: output.Columns("Name", "Backlog", "Bytes", "Leased", "Delayed", "Waiting", "Acks/s"),
	}
	if len(list) > 0 && list[0].subscriptionStats == nil {
		table.Columns = output.Columns("Name")
	}
	filtered := slices.ContainsFunc(list, func(s subscriptionEntry) bool { return s.filterText() != "" })
	if filtered {
		table.Columns = append(table.Columns, output.Columns("Passed over", "Filter")...)
	}
	for _, s := range list {
		row := []string{s.Name}
		if s.subscriptionStats != nil {
			row = append(row, formatInt(s.Backlog), formatBytes(s.Bytes), formatInt(s.Leased), formatInt(s.Delayed),
				strconv.Itoa(s.Waiting), fmt.Sprintf("%.1f", s.AckRate))
		}
		switch {
		case s.filterText() != "":
			row = append(row, formatInt(s.Filter.PassedOver), s.filterText())
		case filtered:
			row = append(row, "", "")
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// filterText returns the filter of a subscription, or "".
func (e *subscriptionEntry) filterText() string {
	if e.subscriptionStats == nil || e.Filter == nil {
		return ""
	}
	return e.Filter.Expression
}

func newSubscriptionUpdate(env *command.Env) *cobra.Command {
	var filter string
	cmd := &cobra.Command{
		Use:   "update TOPIC NAME --filter EXPRESSION",
		Short: "Change the filter of a subscription",
		Long: `Change the filter of a subscription. It applies to messages that were not delivered yet;
those that were passed over before are not delivered, unless you reset the subscription.`,
		Example: `  # receive only messages with a total above 100
  freshet subscription update orders billing --filter 'payload.total > 100'

  # also those that have no field total
  freshet subscription update orders billing --filter '!has(payload.total) || payload.total > 100'

  # receive all messages again
  freshet subscription update orders billing --filter ''`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !cmd.Flags().Changed("filter") {
				return command.Usagef(cmd, "--filter is missing; '' removes the filter")
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			sub := c.Topic(given[0]).Subscription(given[1])
			if err := sub.SetFilter(cmd.Context(), filter); err != nil {
				return err
			}
			return env.Done(command.Result{Kind: "subscription", Name: given[1], Action: "updated"},
				"subscription %s of %s updated", given[1], sub.Topic().ShortName())
		},
	}
	cmd.Flags().StringVar(&filter, "filter", "", "receive only messages that this `expression` selects; '' for all")
	return cmd
}

func newSubscriptionReset(env *command.Env) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "reset TOPIC NAME --to POSITION",
		Short: "Set the position of a subscription",
		Long: `Set the position of a subscription. Messages before the position count as acknowledged;
messages from it on are delivered, even if they were acknowledged. All leases end.`,
		Example: `  # deliver all messages again
  freshet subscription reset orders billing --to earliest

  # skip all messages
  freshet subscription reset orders billing --to latest

  # go back by one hour
  freshet subscription reset orders billing --to 1h`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if to == "" {
				return command.Usagef(cmd,
					"--to is missing; set earliest, latest, a time, a duration ago or a message id")
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
			return env.Done(command.Result{Kind: "subscription", Name: given[1], Action: "reset"},
				"subscription %s of %s reset to %s", given[1], sub.Topic().ShortName(), to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "new `position`: earliest, latest, a time, a duration ago or a message id")
	return cmd
}

func newSubscriptionPeek(env *command.Env) *cobra.Command {
	var o printOptions
	var count int
	var filter string
	cmd := &cobra.Command{
		Use:   "peek TOPIC NAME",
		Short: "Show unacknowledged messages without consuming them",
		Example: `  # the next ten messages of each partition
  freshet subscription peek orders billing

  # the next message of each partition, with key and time
  freshet subscription peek orders billing --count 1 -o json

  # only those that an expression selects, with times and ids
  freshet subscription peek orders billing --filter 'payload.total > 100' -o wide`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
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
			var messages []client.Received
			var progress client.FilterProgress
			if sub := topic.Subscription(given[1]); filter == "" {
				messages, err = sub.Peek(cmd.Context(), count)
			} else {
				messages, progress, err = sub.PeekFilter(cmd.Context(), count, filter)
			}
			if err != nil {
				return err
			}
			for i := range messages {
				if err := p.print(cmd.Context(), &messages[i]); err != nil {
					return err
				}
			}
			printFailures(env, progress)
			return nil
		},
	}
	cmd.Flags().StringVar(&filter, "filter", "", "show only messages that this `expression` selects")
	cmd.Flags().IntVarP(&count, "count", "c", 10, "maximum `number` of messages of each partition")
	o.addFlags(cmd)
	return cmd
}

func newSubscriptionDelete(env *command.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "delete TOPIC NAME",
		Aliases: []string{"rm"},
		Short:   "Delete a subscription",
		Example: `  # a subscription without active consumers
  freshet subscription delete orders audit

  # even if consumers are active
  freshet subscription delete orders billing --force

  # list the remaining subscriptions
  freshet subscription list orders -o name`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			sub := c.Topic(given[0]).Subscription(given[1])
			err := sub.Delete(cmd.Context(), force)
			if errors.Is(err, client.ErrInvalid) && !force {
				return hint.Add(err, "--force deletes it even if consumers are active.")
			}
			if err != nil {
				return err
			}
			return env.Done(command.Result{Kind: "subscription", Name: given[1], Action: "deleted"},
				"subscription %s of %s deleted", given[1], sub.Topic().ShortName())
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it even if consumers are active")
	return cmd
}
