package messagecmd

import (
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

func newSearch(env *command.Env) *cobra.Command {
	var o printOptions
	var from, to string
	search := client.SearchOptions{}
	cmd := &cobra.Command{
		Use:   "search TOPIC EXPRESSION",
		Short: "Find stored messages by an expression",
		Long: `Find the stored messages of a topic that an expression selects, without a subscription. The
expression is in CEL, with the variables payload, key, properties, headers, publishTime,
eventTime, producer, size, partition and offset. The server decodes JSON, and Avro and Protobuf
by the schema of the topic or of the registry.

A message for which the expression fails, such as one without the field, does not match; the
command reports how many there were. has(payload.total) tests whether a field exists.`,
		Example: `  # by a field of the payload and by key
  freshet search orders 'payload.total > 100 && key.startsWith("k")'

  # the first ten messages of the last hour with a property
  freshet search orders '"trace" in properties' --from 1h --limit 10

  # large messages of partition 0, as JSON
  freshet search orders 'size > 1000' --partition 0 -o json`,
		Args:              command.Args(0, "the topic's name", "an expression such as 'payload.total > 100'"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			if search.Limit < 0 {
				return command.Usagef(cmd, "--limit must not be negative")
			}
			if search.From, err = pointInTime(cmd, "from", from); err != nil {
				return err
			}
			if search.To, err = pointInTime(cmd, "to", to); err != nil {
				return err
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
			return runSearch(cmd, env, p, topic, given[1], search)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "first publish `time`: a time or a duration ago (default: the first stored message)")
	f.StringVar(&to, "to", "", "publish `time` before which the search ends: a time or a duration ago (default: now)")
	f.IntVarP(&search.Limit, "limit", "c", 0, "end after this `number` of matches (default: no limit)")
	f.IntSliceVar(&search.Partitions, "partition", nil, "search only this `partition`; repeat it for several")
	o.addFlags(cmd)
	return cmd
}

// pointInTime parses a time, or a duration before now.
func pointInTime(cmd *cobra.Command, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	return time.Time{}, command.Usagef(cmd, "--%s: %q is not a time; use one such as 2026-01-31T12:00:00Z, or a "+
		"duration such as 1h", flag, text)
}

// runSearch prints the matches, and on a terminal the progress.
func runSearch(cmd *cobra.Command, env *command.Env, p *printer, topic *client.Topic, expression string,
	o client.SearchOptions,
) error {
	progress := &output.Progress{} // a progress line would break the messages on a terminal
	if !output.IsTerminal(env.Out) {
		progress = env.Progress()
	}
	var last client.SearchProgress
	o.OnProgress = func(at client.SearchProgress) {
		last = at
		progress.Printf("%d of %d messages read, %d found", at.Scanned, at.Total, at.Matched)
	}
	for message, err := range topic.Search(cmd.Context(), expression, o) {
		if err != nil {
			progress.Clear()
			return err
		}
		if err := p.print(cmd.Context(), message); err != nil {
			return err
		}
	}
	progress.Clear()
	printFailures(env, client.FilterProgress{
		Scanned: last.Scanned, Matched: last.Matched, Failed: last.Failed, Failure: last.Failure,
	})
	return cmd.Context().Err()
}
