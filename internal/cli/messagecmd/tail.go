package messagecmd

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// maxLast is the largest number of stored messages with which a tail begins.
const maxLast = 1000

func newTail(env *command.Env) *cobra.Command {
	var o printOptions
	var from, key, filter string
	var count, last int
	var noFollow bool
	cmd := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Show messages as they arrive, without a subscription",
		Long: `Show the messages of a topic as they arrive, without a subscription and without affecting
the subscriptions of others. The command runs until it is interrupted, and reconnects
after a lost connection.

With --last the command begins with the newest messages: with that many, and at least the newest one
of each partition.

With --filter the server sends only the messages that an expression in CEL selects, as for
'freshet search'. A message for which the expression fails is not shown.`,
		Example: `  # the newest ten stored messages
  freshet tail orders --last 10 --no-follow

  # the stored messages that an expression selects
  freshet tail orders --filter 'payload.total > 100' --no-follow

  # the first message of the last hour, with key and time
  freshet tail orders --from 1h --count 1 -o json

  # messages of the last five minutes with one key
  freshet tail orders --from 5m --key customer-7 --no-follow`,
		Args:              command.OneArg("the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if noFollow && !cmd.Flags().Changed("from") {
				from = "earliest" // no stored message follows latest
			}
			at, err := tailPosition(cmd, from, last)
			if err != nil {
				return err
			}
			if filter != "" && noFollow && last > 0 {
				return command.Usagef(cmd, "--last, --filter and --no-follow cannot be combined; use --from, "+
					"or leave out --no-follow")
			}
			if count < 0 {
				return command.Usagef(cmd, "--count must not be negative")
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
			messages := topic.Tail(cmd.Context(), at)
			var progress client.FilterProgress
			switch {
			case filter != "" && noFollow:
				if messages, err = storedMatches(cmd, topic, from, filter, &progress); err != nil {
					return err
				}
			case filter != "":
				onProgress := func(p client.FilterProgress) { progress = p }
				messages = topic.TailFilter(cmd.Context(), at, filter, onProgress)
			case noFollow:
				messages = topic.Read(cmd.Context(), at)
			}
			hasKey := func(r *client.Received) bool { return !cmd.Flags().Changed("key") || r.Key == key }
			err = printEach(cmd.Context(), env, p, messages, hasKey, count)
			printFailures(env, progress)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "latest",
		"first `position`: earliest, latest, a time, a duration ago or a message id")
	f.IntVar(&last, "last", 0, "begin with the newest messages, at most this `number` (1 to 1000)")
	f.StringVarP(&key, "key", "k", "", "show only messages with this `key`")
	f.StringVar(&filter, "filter", "", "show only messages that this `expression` selects")
	f.IntVarP(&count, "count", "c", 0, "end after this `number` of messages (default: no limit)")
	f.BoolVar(&noFollow, "no-follow", false,
		"end after the last stored message; changes the default of --from to earliest")
	o.addFlags(cmd)
	return cmd
}

// tailPosition returns the position of --from or --last.
func tailPosition(cmd *cobra.Command, from string, last int) (client.Position, error) {
	if !cmd.Flags().Changed("last") {
		return position(cmd, "from", from)
	}
	if cmd.Flags().Changed("from") {
		return client.Position{}, command.Usagef(cmd, "--from and --last cannot be combined")
	}
	if last < 1 || last > maxLast {
		return client.Position{}, command.Usagef(cmd, "--last must be a number of messages from 1 to %d", maxLast)
	}
	return client.Newest(last), nil
}

// storedMatches searches the stored messages from a position.
func storedMatches(cmd *cobra.Command, topic *client.Topic, from, filter string, progress *client.FilterProgress,
) (iter.Seq2[*client.Received, error], error) {
	options := client.SearchOptions{OnProgress: func(p client.SearchProgress) {
		*progress = client.FilterProgress{Scanned: p.Scanned, Matched: p.Matched, Failed: p.Failed, Failure: p.Failure}
	}}
	switch from {
	case "latest":
		return func(func(*client.Received, error) bool) {}, nil // no stored message follows latest
	case "earliest":
	default:
		var err error
		if options.From, err = pointInTime(cmd, "from", from); err != nil {
			return nil, err
		}
	}
	return topic.Search(cmd.Context(), filter, options), nil
}

// printFailures prints for how many messages an expression failed, if it selected none or on a terminal.
func printFailures(env *command.Env, p client.FilterProgress) {
	if p.Failed > 0 && (p.Matched == 0 || output.IsTerminal(env.Err)) {
		_, _ = fmt.Fprintf(env.Err, "the expression failed for %s of %d, the first time with: %s\n",
			output.Number(int(p.Failed), "message"), p.Scanned, p.Failure)
	}
}

// printEach prints the messages that pass a filter, at most count of them unless it is 0.
func printEach(ctx context.Context, env *command.Env, p *printer, messages func(func(*client.Received, error) bool),
	filter func(*client.Received) bool, count int,
) (err error) {
	rate := newRate(env)
	defer func() { rate.end(err) }()
	for message, err := range messages {
		if err != nil {
			return err
		}
		if !filter(message) {
			continue
		}
		if err := p.print(ctx, message); err != nil {
			return err
		}
		if rate.add(); count > 0 && rate.count() == count {
			return nil
		}
	}
	return nil
}
