package messagecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// consumeOptions are the flags of consume.
type consumeOptions struct {
	printOptions

	subscription string
	createFrom   string
	filter       string
	follow       bool
	count        int
	wait         time.Duration
	noAck        bool
	lease        time.Duration
	exec         string
	workers      int
	nackDelay    time.Duration
}

func newConsume(env *command.Env) *cobra.Command {
	var o consumeOptions
	cmd := &cobra.Command{
		Use:   "consume TOPIC --subscription NAME",
		Short: "Receive messages of a subscription and acknowledge them",
		Long: `Receive messages of a subscription. Each message is printed and then acknowledged, so
that it is not delivered again. The command ends when no more messages arrive; with
--follow it waits for more.

With --exec it runs a command for each message instead, with the message on standard
input and FRESHET_TOPIC, FRESHET_SUBSCRIPTION, FRESHET_MESSAGE_ID, FRESHET_MESSAGE_KEY
and FRESHET_REDELIVERIES in the environment. The message is acknowledged if the command
succeeds, and returned for redelivery if it fails; its lease is extended while the
command runs.

With --filter the command ends with an error unless the subscription has this filter. Together
with --create-from, a new subscription gets it. The filter belongs to the subscription, because all
its consumers share the messages: 'freshet subscription update' changes it.

Delivery is at least once: a message may be delivered again after a lost connection. To
read messages without acknowledging them, use 'freshet tail' or 'freshet subscription
peek'.`,
		Example: `  # all messages; create the subscription if it does not exist
  freshet consume orders -s billing --create-from earliest

  # the next ten, with keys and times
  freshet consume orders -s billing --count 10 -o json

  # only some of the messages, with a subscription of their own
  freshet consume orders -s large --create-from earliest --filter 'size > 1000'

  # run a command for each message, four at a time, until no more arrive
  freshet consume orders -s billing --exec 'wc -c' --workers 4`,
		Args:              command.OneArg("the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return o.run(cmd, env, c, c.Topic(given[0]))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.subscription, "subscription", "s", "", "`name` of the subscription")
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("subscription", completeTopics(env)) // of the topic in the argument
	f.StringVar(&o.createFrom, "create-from", "", "create the subscription if it does not exist, at this `position`: "+
		"earliest, latest, a time, a duration ago or a message id")
	f.StringVar(&o.filter, "filter", "", "`expression` that must be the filter of the subscription")
	f.BoolVarP(&o.follow, "follow", "f", false, "wait for more messages until interrupted")
	f.IntVarP(&o.count, "count", "c", 0, "end after this `number` of messages (default: no limit)")
	f.DurationVar(&o.wait, "wait", time.Second, "how long to wait for the next message without --follow")
	f.BoolVar(&o.noAck, "no-ack", false, "return the messages for redelivery instead of acknowledging them")
	f.DurationVar(&o.lease, "lease", 30*time.Second, "how long messages stay leased to this consumer, 1s to 12h")
	f.StringVar(&o.exec, "exec", "", "run this shell `command` for each message")
	f.IntVar(&o.workers, "workers", 1, "`number` of --exec commands that run concurrently")
	f.DurationVar(&o.nackDelay, "nack-delay", time.Second,
		"delay before a message whose command failed is delivered again")
	o.addFlags(cmd)
	return cmd
}

func (o *consumeOptions) check(cmd *cobra.Command) error {
	switch {
	case o.subscription == "":
		return hint.Add(command.Usagef(cmd, "--subscription is missing; name the subscription to consume from"),
			"'freshet subscription list TOPIC' lists the subscriptions; 'freshet tail TOPIC' needs none.")
	case o.count < 0 || o.workers < 1:
		return command.Usagef(cmd, "--count must not be negative, --workers at least 1")
	case o.lease < time.Second || o.lease > 12*time.Hour:
		return command.Usagef(cmd, "--lease must be from 1s to 12h")
	case o.exec != "" && o.noAck:
		return command.Usagef(cmd, "--exec and --no-ack cannot be combined")
	case o.noAck && o.count > client.MaxBatch:
		return command.Usagef(cmd, "--no-ack takes a --count of at most %d", client.MaxBatch)
	case o.exec == "" && cmd.Flags().Changed("workers"):
		return command.Usagef(cmd, "--workers is for --exec")
	}
	return nil
}

func (o *consumeOptions) run(cmd *cobra.Command, env *command.Env, c *client.Client, topic *client.Topic) error {
	sub := topic.Subscription(o.subscription)
	sub.ReceiveOptions.Lease = o.lease
	if o.count > 0 {
		sub.ReceiveOptions.MaxHeld = min(o.count, 100)
	}
	if o.noAck {
		sub.ReceiveOptions.MaxHeld = client.MaxBatch
	}
	if o.createFrom != "" {
		from, err := position(cmd, "create-from", o.createFrom)
		if err != nil {
			return err
		}
		if err := requireTopic(cmd.Context(), c, topic.ShortName()); err != nil {
			return err
		}
		err = sub.Create(cmd.Context(), client.SubscriptionOptions{From: from, Filter: o.filter})
		if err != nil && !errors.Is(err, client.ErrConflict) {
			return err
		}
	}
	if o.filter != "" {
		if err := o.checkFilter(cmd.Context(), sub); err != nil {
			return o.missingSubscription(err, topic)
		}
	}
	p, err := o.printer(cmd, env, c, topic)
	if err != nil {
		return err
	}
	if o.exec != "" {
		err = o.runCommands(cmd, env, sub, p)
	} else {
		err = o.print(cmd.Context(), env, sub, p)
	}
	return o.missingSubscription(err, topic)
}

// missingSubscription adds what to do to the error for a subscription that does not exist. It returns other errors
// unchanged.
func (o *consumeOptions) missingSubscription(err error, topic *client.Topic) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Message == missingSubscription {
		return hint.Add(errs.Newf(errs.NotFound, "subscription %s of topic %s does not exist", o.subscription,
			topic.ShortName()), "Create it with 'freshet subscription create %s %s --from earliest', or add "+
			"--create-from earliest.", topic.ShortName(), o.subscription)
	}
	return err
}

// idleTimeout returns the idle timeout: how long to wait for the next message, 0 means no timeout.
func (o *consumeOptions) idleTimeout() time.Duration {
	if o.follow {
		return 0
	}
	return max(o.wait, time.Millisecond)
}

// print prints messages and acknowledges each after printing it.
func (o *consumeOptions) print(ctx context.Context, env *command.Env, sub *client.Subscription,
	p *printer,
) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clock := newIdleTimer(o.idleTimeout(), passingOver(ctx, sub), cancel)
	defer clock.stop()
	rate := newRate(env)
	defer func() { rate.end(err) }()
	// With --no-ack the messages are returned at the end. A message that is returned
	// earlier would be delivered to this command again.
	var unacked []string
	defer func() {
		nackCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if len(unacked) > 0 {
			_ = sub.Nack(nackCtx, 0, unacked...) // on failure they are redelivered when their lease ends
		}
	}()
	for message, err := range sub.Messages(ctx) {
		if err != nil {
			return err
		}
		clock.stop()
		if err := p.print(ctx, &message.Received); err != nil {
			message.Nack(0)
			return err
		}
		if o.noAck {
			unacked = append(unacked, message.ID)
		} else {
			message.Ack()
		}
		rate.add()
		if o.count > 0 && rate.count() == o.count {
			break
		}
		clock.restart()
	}
	return nil
}

// rate shows the message rate on a terminal, and a summary at the end. It shows no live
// rate if the messages are printed to the same terminal.
type rate struct {
	env      *command.Env
	progress *output.Progress
	meter    *output.Meter
	begin    time.Time
}

func newRate(env *command.Env) *rate {
	r := &rate{env: env, progress: &output.Progress{}, meter: output.NewMeter(), begin: time.Now()}
	if !output.IsTerminal(env.Out) {
		r.progress = env.Progress()
	}
	return r
}

func (r *rate) add() {
	r.meter.Add(1)
	r.meter.Show(r.progress, "message")
}

func (r *rate) count() int { return r.meter.Count() }

// end removes the line. On a terminal it prints the number of messages, if the messages
// went elsewhere or if there were none.
func (r *rate) end(err error) {
	r.progress.Clear()
	if n := r.count(); err == nil && output.IsTerminal(r.env.Err) && (n == 0 || !output.IsTerminal(r.env.Out)) {
		_, _ = fmt.Fprintf(r.env.Err, "%s in %.1f s\n", output.Number(n, "message"), time.Since(r.begin).Seconds())
	}
}
