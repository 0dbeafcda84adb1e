package opscmd

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
)

// payload returns random bytes, which cannot be compressed.
func payload(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails: crypto/rand crashes the program instead
	return data
}

func newBenchProduce(env *command.Env) *cobra.Command {
	o := &benchOptions{env: env}
	var batch int
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Measure how fast messages are stored",
		Long: `Measure how fast messages are stored. Each call sends --batch messages; the server
responds when they are on disk.`,
		Example: `  # one message per call
  freshet bench produce --count 1000 --for 5s

  # a hundred messages per call, with a plot
  freshet bench produce --count 10000 --for 5s --batch 100 --plot produce.svg

  # small messages, one call after the other, for a script
  freshet bench produce --count 200 --for 5s --parallel 1 --size 100 -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if batch < 1 || batch > 1000 {
				return command.Usagef(cmd, "--batch must be 1 to 1000")
			}
			return o.withTopic(cmd.Context(), func(t *client.Topic) error {
				return o.show(o.measure(cmd.Context(), "produce", batch, produceCall(t, payload(o.size))))
			})
		},
	}
	o.addFlags(cmd, 10_000, 10)
	o.addSize(cmd)
	cmd.Flags().IntVar(&batch, "batch", 1, "`messages` per call, 1 to 1000")
	return cmd
}

func produceCall(t *client.Topic, data []byte) func(ctx context.Context, n, most int) (int, error) {
	return func(ctx context.Context, _, most int) (int, error) {
		if most == 1 {
			if _, err := t.Produce(ctx, client.Message{Value: data}); err != nil {
				return 0, err
			}
			return 1, nil
		}
		messages := make([]client.Message, most)
		for i := range messages {
			messages[i].Value = data
		}
		results, err := t.ProduceBatch(ctx, messages)
		if err != nil {
			return 0, err
		}
		for _, one := range results {
			if one.Err != nil {
				return 0, one.Err
			}
		}
		return len(results), nil
	}
}

func newBenchConsume(env *command.Env) *cobra.Command {
	o := &benchOptions{env: env}
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Measure how fast messages are delivered and acknowledged",
		Long: `Measure how fast messages are delivered and acknowledged. The command first fills a
topic, for at most the duration of --for. Each call then fetches up to 100 messages and
acknowledges them.`,
		Example: `  # a thousand messages
  freshet bench consume --count 1000 --for 5s

  # large messages, two consumers, with a plot
  freshet bench consume --count 200 --for 5s --size 65536 --parallel 2 --plot consume.svg

  # for a script
  freshet bench consume --count 500 --for 5s -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.withTopic(cmd.Context(), func(t *client.Topic) error { return o.consume(cmd.Context(), t) })
		},
	}
	o.addFlags(cmd, 10_000, 4)
	o.addSize(cmd)
	return cmd
}

// maxFetch is the maximum of messages that one call fetches.
const maxFetch = 100

func (o *benchOptions) consume(ctx context.Context, t *client.Topic) error {
	sub := t.Subscription(temporaryName())
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
		return err
	}
	if o.topic != "" { // a temporary topic is removed with its subscriptions
		defer func() {
			// A failed cleanup does not invalidate the result.
			_ = cleanup(ctx, func(ctx context.Context) error { return sub.Delete(ctx, true) })
		}()
	}
	fill := *o
	fill.workers = 2
	batch := min(o.count, maxFetch, max(1, (1<<20)/max(1, o.size)))
	filled, err := fill.measure(ctx, "fill", batch, produceCall(t, payload(o.size)))
	if err != nil {
		return err
	}
	o.count = filled.Count
	return o.show(o.measure(ctx, "consume", maxFetch, func(ctx context.Context, _, most int) (int, error) {
		got, err := sub.Fetch(ctx, most, 100*time.Millisecond, time.Minute)
		if err != nil || len(got) == 0 {
			return 0, err
		}
		ids := make([]string, len(got))
		for i, m := range got {
			ids[i] = m.ID
		}
		return len(got), sub.Ack(ctx, ids...)
	}))
}

func newBenchRegistry(env *command.Env) *cobra.Command {
	o := &benchOptions{env: env}
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Measure how fast schemas are registered and read",
		Long: `Measure how fast schemas are registered and read. Each call registers a new version of a
temporary subject and reads it by its id.`,
		Example: `  # a hundred versions
  freshet bench registry --count 100 --for 5s

  # one after the other, with a plot
  freshet bench registry --count 50 --for 5s --parallel 1 --plot registry.svg

  # for a script
  freshet bench registry --count 50 --for 5s -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.registry(cmd.Context())
		},
	}
	o.addFlags(cmd, 500, 4)
	return cmd
}

func (o *benchOptions) registry(ctx context.Context) error {
	c, err := o.env.ClusterClient(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	registry, subject := schemas.New(c), temporaryName()
	r, err := o.measure(ctx, "registry", 1, func(ctx context.Context, n, _ int) (int, error) {
		text := fmt.Sprintf(`{"type":"record","name":"Bench","fields":[{"name":"id","type":"long"},`+
			`{"name":"f%d","type":"string","default":""}]}`, n)
		id, err := registry.Register(ctx, subject, schemas.Schema{Type: schemas.Avro, Text: text})
		if err != nil {
			return 0, err
		}
		_, err = registry.ByID(ctx, id)
		return 1, err
	})
	tidy := cleanup(ctx, func(ctx context.Context) error {
		if _, err := registry.DeleteSubject(ctx, subject, false); err != nil {
			return err
		}
		_, err := registry.DeleteSubject(ctx, subject, true)
		return err
	})
	if err := o.show(r, err); err != nil {
		return err
	}
	return tidy
}
