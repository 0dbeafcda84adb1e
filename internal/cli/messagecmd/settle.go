package messagecmd

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

func newAck(env *command.Env) *cobra.Command {
	var cumulative bool
	cmd := &cobra.Command{
		Use:   "ack TOPIC SUBSCRIPTION ID...",
		Short: "Acknowledge messages by their ids",
		Long: `Acknowledge messages by their ids, so that the subscription does not deliver them again.
Acknowledging a message twice is not an error.`,
		Example: `  # the first message that peek shows
  freshet ack orders billing $(freshet subscription peek orders billing -o name | head -n 1)

  # all messages of a partition up to that message
  freshet ack orders billing --cumulative $(freshet subscription peek orders billing -o name | head -n 1)

  # skip all messages
  freshet subscription reset orders billing --to latest`,
		Args:              command.Args(command.Any, "the topic's name", "the subscription's name", "ids of messages"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			sub, ids := c.Topic(given[0]).Subscription(given[1]), given[2:]
			settle := sub.Ack
			if cumulative {
				settle = sub.AckCumulative
			}
			if err := settle(cmd.Context(), ids...); err != nil {
				return err
			}
			return env.Done(command.Result{
				Kind: "subscription", Name: given[1], Action: "acknowledged", Count: new(len(ids)),
			}, "%d acknowledged", len(ids))
		}),
	}
	cmd.Flags().BoolVar(&cumulative, "cumulative", false,
		"also acknowledge all messages before them on their partitions")
	return cmd
}

func newNack(env *command.Env) *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   "nack TOPIC SUBSCRIPTION ID...",
		Short: "Return leased messages for redelivery",
		Long: `Return leased messages for redelivery. If a message was delivered more than once, use the
receipt of its delivery, which 'freshet consume -o json' shows, because another consumer
may hold the message now.`,
		Example: `  # a message whose id a consumer has saved
  freshet nack orders billing $(head -n 1 held.txt)

  # redeliver another one after five minutes
  freshet nack orders billing --delay 5m $(sed -n 2p held.txt)

  # the remaining ones
  tail -n +3 held.txt | xargs freshet nack orders billing`,
		Args:              command.Args(command.Any, "the topic's name", "the subscription's name", "ids of messages"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			ids := given[2:]
			err := c.Topic(given[0]).Subscription(given[1]).Nack(cmd.Context(), delay, ids...)
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "A message that is not leased is delivered without this command; 'freshet "+
					"subscription reset' redelivers acknowledged messages.")
			}
			if err != nil {
				return err
			}
			return env.Done(command.Result{
				Kind: "subscription", Name: given[1], Action: "returned", Count: new(len(ids)),
			}, "%d returned for redelivery", len(ids))
		}),
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "`duration` to wait before the redelivery")
	return cmd
}
