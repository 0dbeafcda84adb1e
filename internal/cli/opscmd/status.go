package opscmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/retry"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// overview is the status of a server. It omits what the caller may not see.
type overview struct {
	Server   string     `json:"server"`
	Time     time.Time  `json:"time"`
	Ready    bool       `json:"ready"`
	Problems []string   `json:"problems,omitempty"`
	Version  string     `json:"version,omitempty"`
	Started  *time.Time `json:"started,omitempty"`

	Organizations *int           `json:"organizations,omitempty"`
	Clusters      *clusterCounts `json:"clusters,omitempty"`
	Messages      *messageCounts `json:"messages,omitempty"`
	Disk          *diskUse       `json:"disk,omitempty"`
	LastBackup    *time.Time     `json:"lastBackup,omitempty"`

	History *client.History `json:"history,omitempty"` // of the cluster in use, over the last hour
}

type clusterCounts struct {
	Total    int `json:"total"`
	Ready    int `json:"ready"`
	Topics   int `json:"topics"`
	Subjects int `json:"subjects"`
}

type messageCounts struct {
	ProducedPerSecond  float64 `json:"producedPerSecond"`
	DeliveredPerSecond float64 `json:"deliveredPerSecond"`
	RequestsPerSecond  float64 `json:"requestsPerSecond"`
	Backlog            int64   `json:"backlog"`
	OldestAgeSeconds   float64 `json:"oldestAgeSeconds"`
}

type diskUse struct {
	UsedBytes int64 `json:"usedBytes"`
	FreeBytes int64 `json:"freeBytes"`
}

func newStatus(env *command.Env) *cobra.Command {
	var format output.Format
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the status of a server on one screen",
		Long: `Show the status of a server on one screen: version, uptime, health, organizations,
clusters and topics, message rates and backlog, disk, backups, and the last hour of the
cluster in use. A system administrator sees everything; other callers see their
organization if they have the role metrics-viewer.

Rates are averages over one second, or with -w over --every.`,
		Example: `  # once
  freshet status

  # as JSON, for a script
  freshet status -o json > status.json

  # refresh until interrupted
  freshet status -w`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < time.Second {
				return command.Usagef(cmd, "--every must be at least 1s")
			}
			conn, err := env.Client()
			if err != nil {
				return err
			}
			defer conn.Close()
			s := status{env: env, conn: conn, format: format, every: every}
			defer func() {
				if s.cluster != nil {
					s.cluster.Close()
				}
			}()
			return s.run(cmd.Context(), watch)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "refresh until interrupted")
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "refresh `interval` of --watch, at least 1s")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// status is the state of one status command.
type status struct {
	env     *command.Env
	conn    *client.Client
	cluster *client.Client // for the history; nil until it is needed
	format  output.Format
	every   time.Duration
	before  *scrape
}

func (s *status) run(ctx context.Context, watch bool) error {
	before, err := metrics(ctx, s.conn)
	if err != nil && !errors.Is(err, client.ErrDenied) && !errors.Is(err, client.ErrNotFound) {
		return err
	}
	s.before = before
	shown := false
	for pause := time.Second; ; pause = s.every {
		if s.before != nil || shown {
			if err := retry.Sleep(ctx, pause); err != nil {
				return err
			}
		}
		o, err := s.collect(ctx)
		if err != nil {
			return err
		}
		if err := s.print(o, watch); err != nil || !watch {
			return err
		}
		shown = true
	}
}

// collect collects the status once.
func (s *status) collect(ctx context.Context) (*overview, error) {
	o := &overview{Server: s.conn.BaseURL(), Time: time.Now().UTC().Truncate(time.Millisecond)}
	response, err := s.conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/readyz", Timeout: 10 * time.Second})
	var refusal *client.Error
	switch {
	case err == nil:
		o.Ready = response.Status == http.StatusOK
	case errors.As(err, &refusal):
		o.Problems = append(o.Problems, "not ready: "+refusal.Message)
	default:
		return nil, err
	}
	if err := s.count(ctx, o); err != nil {
		return nil, err
	}
	o.History = s.history(ctx)
	now, err := metrics(ctx, s.conn)
	if errors.Is(err, client.ErrDenied) || errors.Is(err, client.ErrNotFound) {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	s.measure(o, now)
	s.before = now
	return o, nil
}

// history returns the last hour of the cluster in use. It returns nil if the caller may not read it or the call
// fails, so that the command prints the rest of the status.
func (s *status) history(ctx context.Context) *client.History {
	if s.cluster == nil {
		cluster, err := s.env.ClusterClient(ctx)
		if err != nil {
			return nil
		}
		s.cluster = cluster
	}
	h, _ := s.cluster.History(ctx, client.LastHour) // nil after an error
	return h
}

// count counts the organizations and clusters that the caller may see.
func (s *status) count(ctx context.Context, o *overview) error {
	r := resources.New(s.conn)
	organizations, err := r.List(ctx, resources.Organizations, "", resources.ListOptions{})
	switch {
	case err == nil:
		o.Organizations = new(len(organizations))
	case !errors.Is(err, client.ErrDenied):
		return err
	}
	clusters, err := r.List(ctx, resources.MessagingClusters, "", resources.ListOptions{})
	if errors.Is(err, client.ErrDenied) {
		at, found := s.env.Context()
		if found != nil {
			return found
		}
		clusters, err = r.List(ctx, resources.MessagingClusters, at.Organization, resources.ListOptions{})
	}
	if errors.Is(err, client.ErrDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	o.Clusters = &clusterCounts{Total: len(clusters)}
	for _, c := range clusters {
		if c.Condition("Ready").Status == "True" {
			o.Clusters.Ready++
			continue
		}
		o.Problems = append(o.Problems,
			fmt.Sprintf("cluster %s/%s is not ready: %s", c.Organization(), c.Name(), c.Condition("Ready").Message))
	}
	return nil
}

// measure fills in the values of the metrics.
func (s *status) measure(o *overview, now *scrape) {
	o.Version = now.label("freshet_build_info", "version")
	if start := now.maximum("process_start_time_seconds"); start > 0 {
		o.Started = new(time.Unix(int64(start), 0).UTC())
	}
	if o.Clusters != nil {
		o.Clusters.Topics, o.Clusters.Subjects = int(now.sum("freshet_messaging_topics")),
			int(now.sum("freshet_registry_subjects", "state", "active"))
	}
	o.Messages = &messageCounts{
		Backlog:          int64(now.sum("freshet_namespace_backlog_messages")),
		OldestAgeSeconds: now.maximum("freshet_namespace_oldest_unacknowledged_age_seconds"),
	}
	if s.before != nil {
		o.Messages.ProducedPerSecond = now.rate(s.before, "freshet_namespace_produced_messages_total")
		o.Messages.DeliveredPerSecond = now.rate(s.before, "freshet_namespace_delivered_messages_total")
		o.Messages.RequestsPerSecond = now.rate(s.before, "freshet_http_requests_total")
	}
	if free, ok := now.minimum("freshet_store_disk_available_bytes"); ok {
		o.Disk = &diskUse{UsedBytes: int64(now.sum("freshet_store_disk_used_bytes") +
			now.sum("freshet_integrity_quarantine_bytes")), FreeBytes: int64(free)}
	}
	if last := now.maximum("freshet_backup_last_timestamp_seconds"); last > 0 {
		o.LastBackup = new(time.Unix(int64(last), 0).UTC())
	}
	if now.maximum("freshet_etcd_refusing") > 0 {
		o.Problems = append(o.Problems, "the resource store is full and accepts no new objects")
	}
}

func (s *status) print(o *overview, watch bool) error {
	if s.format != output.FormatText {
		return output.Value(s.env.Out, s.format, o)
	}
	style := s.env.Style()
	var b strings.Builder
	if watch && output.IsTerminal(s.env.Out) {
		b.WriteString("\x1b[H\x1b[2J")
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s%s\n", name+":", output.Clean(fmt.Sprintf(format, args...)))
	}
	line("Server", "%s", o.Server)
	if o.Version != "" {
		line("Version", "%s", o.Version)
	}
	if o.Started != nil {
		line("Up", "%s", output.Age(o.Time.Sub(*o.Started)))
	}
	health := style.Good("ready")
	if !o.Ready {
		health = style.Bad("not ready")
	}
	fmt.Fprintf(&b, "%-15s%s\n", "Health:", health)
	if o.Organizations != nil {
		line("Organizations", "%d", *o.Organizations)
	}
	if c := o.Clusters; c != nil {
		line("Clusters", "%d, %d ready", c.Total, c.Ready)
		if o.Messages != nil {
			line("Topics", "%d", c.Topics)
			line("Subjects", "%d", c.Subjects)
		}
	}
	if m := o.Messages; m != nil {
		line("Messages", "%.1f/s in, %.1f/s out, %.1f requests/s", m.ProducedPerSecond, m.DeliveredPerSecond,
			m.RequestsPerSecond)
		line("Backlog", "%d messages, the oldest %s old", m.Backlog,
			output.Age(time.Duration(m.OldestAgeSeconds)*time.Second))
	} else {
		line("Messages", "not shown: requires the role metrics-viewer")
	}
	if h := o.History; h != nil && h.Recorded {
		line("In, 1 hour", "%s", output.Trend(s.env.Out, h.In, "/s"))
		line("Out, 1 hour", "%s", output.Trend(s.env.Out, h.Out, "/s"))
		line("Backlog, 1 h", "%s", output.Trend(s.env.Out, h.Backlog, ""))
		if h.Incomplete {
			line("History", "incomplete, because a member of the ensemble did not respond")
		}
	}
	if o.Disk != nil {
		line("Disk", "%s used, %s free", output.Bytes(o.Disk.UsedBytes, 3), output.Bytes(o.Disk.FreeBytes, 3))
	}
	if o.LastBackup != nil {
		line("Last backup", "%s ago", output.Age(o.Time.Sub(*o.LastBackup)))
	} else if o.Messages != nil {
		line("Last backup", "no scheduled backup (backup.directory)")
	}
	for _, problem := range o.Problems {
		fmt.Fprintf(&b, "%-15s%s\n", style.Bad("Problem:"), output.Clean(problem))
	}
	_, err := fmt.Fprint(s.env.Out, b.String())
	return err
}
