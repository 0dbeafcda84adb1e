package messagecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newDeadLetter(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:     "dead-letter",
		Aliases: []string{"dead-letters", "dlq"},
		Short:   "List dead letters and send them again",
		Long: `List the dead letters of a subscription, and send them again. A subscription with
--max-redeliver moves a message that was redelivered too often to its dead letter topic.`,
		Example: `  # list the dead letters
  freshet dead-letter list orders billing

  # with keys, times and original ids
  freshet dead-letter list orders billing -o json

  # send them again, after the cause is fixed
  freshet dead-letter replay orders billing`,
	}, newDeadLetterList(env), newDeadLetterReplay(env))
}

// deadLetterTopic returns the dead letter topic of a subscription.
func deadLetterTopic(ctx context.Context, c *client.Client, topic, subscription string) (*client.Topic, error) {
	dead, err := c.Topic(topic).Subscription(subscription).DeadLetterTopic(ctx)
	if err != nil {
		return nil, err
	}
	if dead == nil {
		return nil, hint.Add(fmt.Errorf("subscription %s of %s has no redelivery limit, so it has no dead letters",
			subscription, topic),
			"Create a subscription with a limit with 'freshet subscription create --max-redeliver N'.")
	}
	return dead, nil
}

func newDeadLetterList(env *command.Env) *cobra.Command {
	var o printOptions
	var count int
	cmd := &cobra.Command{
		Use:     "list TOPIC SUBSCRIPTION",
		Aliases: []string{"ls"},
		Short:   "List the dead letters of a subscription",
		Long: `List the dead letters of a subscription, oldest first, including those that were
replayed. The property ORIGIN_MESSAGE_ID has the id of the original message.`,
		Example: `  # list the dead letters
  freshet dead-letter list orders billing

  # with keys, times and original ids
  freshet dead-letter list orders billing -o json

  # the first five
  freshet dead-letter list orders billing --count 5 -o wide`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			dead, err := deadLetterTopic(cmd.Context(), c, given[0], given[1])
			if err != nil {
				return err
			}
			p, err := o.printer(cmd, env, c, dead)
			if err != nil {
				return err
			}
			all := func(*client.Received) bool { return true }
			return printEach(cmd.Context(), env, p, dead.Read(cmd.Context(), client.Earliest), all, count)
		}),
	}
	cmd.Flags().IntVarP(&count, "count", "c", 0, "maximum `number` of messages (default: no limit)")
	o.addFlags(cmd)
	return cmd
}

func newDeadLetterReplay(env *command.Env) *cobra.Command {
	var o client.ReplayOptions
	cmd := &cobra.Command{
		Use:   "replay TOPIC SUBSCRIPTION",
		Short: "Send a subscription's dead letters to the topic again",
		Long: `Send a subscription's dead letters to the topic again, oldest first, each once: the
subscription freshet-replay of the dead letter topic records which were sent. All
subscriptions of the topic receive them; use --to to send them to another topic.

With --filter only those are sent that an expression in CEL selects, as for 'freshet
search'; the others stay dead letters, and so do those that the target rejects.`,
		Example: `  # count the dead letters that an expression selects
  freshet dead-letter replay orders billing --filter 'payload.contains("order")' --dry-run

  # try one first, in a separate topic
  freshet dead-letter replay orders billing --count 1 --to orders-retry

  # all dead letters that were not replayed before
  freshet dead-letter replay orders billing`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			if o.Limit < 0 {
				return command.Usagef(cmd, "--count must not be negative")
			}
			if _, err := deadLetterTopic(cmd.Context(), c, given[0], given[1]); err != nil {
				return err
			}
			target := c.Topic(given[0])
			if o.To != "" {
				target = c.Topic(o.To)
				if err := requireTopic(cmd.Context(), c, o.To); err != nil {
					return err
				}
			}
			done, err := c.Topic(given[0]).Subscription(given[1]).Replay(cmd.Context(), o)
			if err != nil {
				return fmt.Errorf("replaying after %d messages: %w", done.Replayed, err)
			}
			if done.Failed > 0 {
				_, _ = fmt.Fprintf(env.Err, "%s could not be evaluated or sent, the first one because of: %s\n",
					output.Number(int(done.Failed), "dead letter"), done.Failure)
			}
			n, action, text := int(done.Replayed), "replayed", "%d messages sent to %s"
			if o.DryRun {
				n, action, text = int(done.Matched), "not replayed", "%d messages would be sent to %s"
			}
			return env.Done(command.Result{Kind: "topic", Name: target.ShortName(), Action: action, Count: &n},
				text, n, target.ShortName())
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Filter, "filter", "", "send only dead letters that this `expression` selects")
	f.StringVar(&o.To, "to", "", "`topic` to send to (default: TOPIC)")
	f.BoolVar(&o.DryRun, "dry-run", false, "count the dead letters and change nothing")
	f.IntVarP(&o.Limit, "count", "c", 0, "maximum `number` of messages (default: no limit)")
	return cmd
}
