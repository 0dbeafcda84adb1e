package messagecmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// topicDescription is the output of describe, as text and as JSON.
type topicDescription struct {
	Name          string                       `json:"name"`
	Partitions    int                          `json:"partitions"`
	Properties    map[string]string            `json:"properties,omitempty"`
	Created       *time.Time                   `json:"created,omitempty"`
	LastPublish   *time.Time                   `json:"lastPublish,omitempty"`
	Bytes         int64                        `json:"storageBytes"`
	In            int64                        `json:"messagesIn"`
	RateIn        float64                      `json:"messageRateIn"`
	Out           int64                        `json:"messagesOut"`
	RateOut       float64                      `json:"messageRateOut"`
	Schema        string                       `json:"schema,omitempty"`
	Settings      map[string]string            `json:"settings,omitempty"`
	Subscriptions map[string]topicSubscription `json:"subscriptions"`
	Groups        map[string]topicGroup        `json:"groups,omitempty"`
	History       *client.History              `json:"history,omitempty"` // of the last hour
}

type topicSubscription struct {
	Backlog int64 `json:"backlog"`
	Bytes   int64 `json:"backlogBytes"`
	Leased  int64 `json:"leased"`
	Delayed int64 `json:"delayed"`
	Waiting int   `json:"waiting"`

	Filter *subscriptionFilter `json:"filter,omitempty"`
}

type topicGroup struct {
	State   string `json:"state"`
	Members int    `json:"members"`
	Lag     int64  `json:"lag"`
}

func newTopicDescribe(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe TOPIC",
		Short: "Show a topic, its subscriptions and their backlogs",
		Long: `Show a topic, its subscriptions and their backlogs, and the last hour of its messages and
backlog if the server has recorded it: it keeps a history of the busiest topics.`,
		Example: `  # its subscriptions and consumer groups, with backlog and lag
  freshet topic describe orders

  # as JSON, for scripts
  freshet topic describe orders -o json

  # as YAML
  freshet topic describe orders -o yaml`,
		Args:              command.OneArg("the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			d, err := describeTopic(cmd, c.Topic(given[0]))
			if err != nil {
				return err
			}
			if d.Settings, err = readSettings(cmd.Context(), c, topicPath(c.Topic(given[0])), true); err != nil &&
				!errors.Is(err, client.ErrDenied) { // the rest of the description needs fewer permissions
				return err
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, d)
			}
			return d.write(env.Out)
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func describeTopic(cmd *cobra.Command, topic *client.Topic) (*topicDescription, error) {
	stats, err := topic.Stats(cmd.Context())
	if err != nil {
		return nil, err
	}
	d := &topicDescription{
		Name: topic.ShortName(), Partitions: stats.Partitions, Bytes: stats.StorageBytes,
		In: stats.MessagesIn, RateIn: stats.MessageRateIn, Out: stats.MessagesOut, RateOut: stats.MessageRateOut,
		Subscriptions: make(map[string]topicSubscription), Groups: make(map[string]topicGroup),
	}
	if !stats.Created.IsZero() {
		d.Created = &stats.Created
	}
	if !stats.LastPublish.IsZero() {
		d.LastPublish = &stats.LastPublish
	}
	for name, s := range stats.Subscriptions {
		d.Subscriptions[name] = newTopicSubscription(&s)
	}
	for name, g := range stats.Groups {
		d.Groups[name] = topicGroup(g)
	}
	var refusal *client.Error
	if d.History, err = topic.History(cmd.Context(), client.LastHour); err != nil {
		if !errors.As(err, &refusal) { // servers of earlier versions have no history
			return nil, err
		}
	}
	if d.Properties, err = topic.Properties(cmd.Context()); err != nil {
		return nil, err
	}
	schema, err := topic.Schema(cmd.Context())
	switch {
	case err == nil:
		d.Schema = fmt.Sprintf("%s, version %d", schema.Type, schema.Version)
	case !errors.Is(err, client.ErrNotFound):
		return nil, err
	}
	return d, nil
}

func (d *topicDescription) write(w io.Writer) error {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-15s%s\n", name+":", output.Clean(value))
		}
	}
	line("Name", d.Name)
	line("Partitions", partitionText(d.Partitions))
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		line("Property", name+"="+d.Properties[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Settings)) {
		line("Setting", name+"="+d.Settings[name])
	}
	line("Created", formatTime(d.Created))
	line("Last message", formatTime(d.LastPublish))
	line("Stored", formatBytes(d.Bytes))
	line("In", fmt.Sprintf("%d messages, %.1f/s", d.In, d.RateIn))
	line("Out", fmt.Sprintf("%d messages, %.1f/s", d.Out, d.RateOut))
	if h := d.History; h != nil && h.Recorded {
		line("In, 1 hour", output.Trend(w, h.In, "/s"))
		line("Out, 1 hour", output.Trend(w, h.Out, "/s"))
		line("Backlog, 1 h", output.Trend(w, h.Backlog, ""))
		if h.Incomplete {
			line("History", "incomplete, because a member of the ensemble did not respond")
		}
	}
	line("Schema", d.Schema)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(d.Subscriptions) > 0 {
		table := output.Table{Columns: output.Columns("Subscription", "Backlog", "Bytes", "Leased",
			"Delayed", "Waiting")}
		for _, name := range slices.Sorted(maps.Keys(d.Subscriptions)) {
			s := d.Subscriptions[name]
			table.Rows = append(table.Rows,
				[]string{
					name, formatInt(s.Backlog), formatBytes(s.Bytes), formatInt(s.Leased), formatInt(s.Delayed),
					strconv.Itoa(s.Waiting),
				})
		}
		if err := writeTable(w, &table); err != nil {
			return err
		}
		if err := writeFilters(w, d.Subscriptions); err != nil {
			return err
		}
	}
	if len(d.Groups) > 0 {
		table := output.Table{Columns: output.Columns("Group", "State", "Members", "Lag")}
		for _, name := range slices.Sorted(maps.Keys(d.Groups)) {
			g := d.Groups[name]
			table.Rows = append(table.Rows, []string{name, g.State, strconv.Itoa(g.Members), formatInt(g.Lag)})
		}
		return writeTable(w, &table)
	}
	return nil
}

// writeFilters prints the filters of subscriptions, if there are any.
func writeFilters(w io.Writer, subscriptions map[string]topicSubscription) error {
	table := output.Table{Columns: output.Columns("Subscription", "Selected", "Passed over", "Failed", "Filter")}
	for _, name := range slices.Sorted(maps.Keys(subscriptions)) {
		if f := subscriptions[name].Filter; f != nil {
			table.Rows = append(table.Rows, []string{
				name, formatInt(f.Selected), formatInt(f.PassedOver), formatInt(f.Failed), f.Expression,
			})
		}
	}
	if len(table.Rows) == 0 {
		return nil
	}
	return writeTable(w, &table)
}

// writeTable prints an empty line and a table.
func writeTable(w io.Writer, table *output.Table) error {
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return table.Write(w)
}

func partitionText(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

func formatTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// formatBytes formats a number of bytes with a binary unit.
func formatBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	size, power := float64(n)/unit, 0
	for size >= unit && power < 4 {
		size, power = size/unit, power+1
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[power])
}
