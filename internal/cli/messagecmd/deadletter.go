package messagecmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
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

// replaySubscription is the subscription whose cursor records which dead letters were
// replayed.
const replaySubscription = "freshet-replay"

func newDeadLetterReplay(env *command.Env) *cobra.Command {
	var to string
	var count int
	cmd := &cobra.Command{
		Use:   "replay TOPIC SUBSCRIPTION",
		Short: "Send a subscription's dead letters to the topic again",
		Long: `Send a subscription's dead letters to the topic again, oldest first, each once: the
subscription ` + replaySubscription + ` of the dead letter topic records which were sent. All
subscriptions of the topic receive them; use --to to send them to another topic.`,
		Example: `  # all dead letters that were not replayed before
  freshet dead-letter replay orders billing

  # try one first
  freshet dead-letter replay orders billing --count 1

  # to a separate topic
  freshet dead-letter replay orders billing --to orders-retry`,
		Args:              command.Args(0, "the topic's name", "the subscription's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			dead, err := deadLetterTopic(cmd.Context(), c, given[0], given[1])
			if err != nil {
				return err
			}
			target := c.Topic(given[0])
			if to != "" {
				target = c.Topic(to)
				if err := requireTopic(cmd.Context(), c, to); err != nil {
					return err
				}
			}
			n, err := replay(cmd.Context(), dead, target, count)
			if err != nil {
				return fmt.Errorf("replaying after %d messages: %w", n, err)
			}
			return env.Done(command.Result{Kind: "topic", Name: target.ShortName(), Action: "replayed", Count: &n},
				"%d messages sent to %s", n, target.ShortName())
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "`topic` to send to (default: TOPIC)")
	cmd.Flags().IntVarP(&count, "count", "c", 0, "maximum `number` of messages (default: no limit)")
	return cmd
}

// replay sends dead letters to a topic. It acknowledges a letter after its copy is stored.
// The copy has the letter's id as its idempotency key, so that a retry stores no duplicate.
func replay(ctx context.Context, dead, target *client.Topic, count int) (int, error) {
	sub := dead.Subscription(replaySubscription)
	err := sub.Create(ctx, client.SubscriptionOptions{From: client.Earliest})
	if err != nil && !errors.Is(err, client.ErrConflict) {
		return 0, err
	}
	sub.ReceiveOptions.MaxHeld = 100
	if count > 0 {
		sub.ReceiveOptions.MaxHeld = min(count, 100)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clock := newIdleTimer(time.Second, cancel)
	defer clock.stop()
	n := 0
	for letter, err := range sub.Messages(ctx) {
		if err != nil {
			return n, err
		}
		clock.stop()
		if _, err := target.Produce(ctx, replayed(letter)); err != nil {
			letter.Nack(0)
			return n, err
		}
		if err := letter.AckWait(ctx); err != nil {
			return n, err
		}
		if n++; n == count {
			return n, nil
		}
		clock.restart()
	}
	return n, nil
}

// replayed returns the original message of a dead letter.
func replayed(letter *client.Delivery) client.Message {
	m := client.Message{
		Value: letter.Value, NullValue: letter.NullValue, Key: letter.Key, EmptyKey: letter.EmptyKey,
		Properties: maps.Clone(letter.Properties), EventTime: letter.EventTime,
		IdempotencyKey: "replay-" + letter.StringID,
	}
	delete(m.Properties, client.PropertyOrigin)
	for _, header := range letter.Headers {
		if header.Name != client.PropertyOrigin {
			m.Headers = append(m.Headers, header)
		}
	}
	return m
}
