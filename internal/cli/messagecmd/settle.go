package messagecmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

func newAck(env *command.Env) *cobra.Command {
	var cumulative bool
	cmd := &cobra.Command{
		Use:   "ack TOPIC SUBSCRIPTION ID...",
		Short: "Acknowledge messages by their ids",
		Long: `Acknowledge messages by their ids, so that the subscription delivers them no more.
Acknowledging twice is no error.`,
		Example: `  # the message that peek shows first
  freshet ack orders billing $(freshet subscription peek orders billing -o name | head -n 1)

  # all of a partition up to a message
  freshet ack orders billing --cumulative $(freshet subscription peek orders billing -o name | head -n 1)

  # skip everything that is there
  freshet subscription reset orders billing --to latest`,
		Args:              argsAndMore("the topic's name", "the subscription's name", "ids of messages"),
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
			_, err := fmt.Fprintf(env.Out, "%d acknowledged\n", len(ids))
			return err
		}),
	}
	cmd.Flags().BoolVar(&cumulative, "cumulative", false, "and all messages before them on their partitions")
	return cmd
}

func newNack(env *command.Env) *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   "nack TOPIC SUBSCRIPTION ID...",
		Short: "Give messages back that are on lease, to be delivered again",
		Long: `Give messages back that are on lease, to be delivered again. A message that was
delivered before has to be named by the receipt of its delivery, which
'freshet consume -o json' shows, since another reader may have it by now.`,
		Example: `  # a message whose id a reader wrote down before it died
  freshet nack orders billing $(head -n 1 held.txt)

  # another one, not before five minutes have passed
  freshet nack orders billing --delay 5m $(sed -n 2p held.txt)

  # all the others
  tail -n +3 held.txt | xargs freshet nack orders billing`,
		Args:              argsAndMore("the topic's name", "the subscription's name", "ids of messages"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			ids := given[2:]
			err := c.Topic(given[0]).Subscription(given[1]).Nack(cmd.Context(), delay, ids...)
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "A message that is not on lease comes by itself; 'freshet subscription reset' "+
					"delivers again what was acknowledged.")
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Out, "%d given back\n", len(ids))
			return err
		}),
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "not before this `duration` has passed")
	return cmd
}
