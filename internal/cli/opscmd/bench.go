package opscmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
)

// The most that a run may ask of a server.
const (
	maxCount   = 10_000_000
	maxSize    = 1 << 20
	maxWorkers = 256
)

// benchOptions are the flags that every measurement has.
type benchOptions struct {
	env     *command.Env
	count   int
	limit   time.Duration
	workers int
	size    int
	topic   string
	plot    string
	format  output.Format
}

// result is what was measured. Times are in milliseconds.
type result struct {
	Name      string  `json:"name"`
	Count     int     `json:"count"`
	Errors    int     `json:"errors"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	// MBPerSecond is payload, in millions of bytes.
	MBPerSecond float64 `json:"mbPerSecond,omitempty"`
	Size        int     `json:"size,omitempty"`
	Workers     int     `json:"workers"`
	P50         float64 `json:"p50Ms"`
	P90         float64 `json:"p90Ms"`
	P99         float64 `json:"p99Ms"`
	Max         float64 `json:"maxMs"`

	samples []sample
}

// sample is one call: when it began, and how long it took.
type sample struct{ at, took time.Duration }

func newBench(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a server can do",
		Long: `Measure what a server can do for one client: producing, consuming, and the schema
registry. Each run is bounded in number (--count) and time (--for), whichever ends
first, and works on a topic or subject of its own that it removes at the end. It asks as
much of the server as it can: mind who else uses it.`,
		Example: `  # messages of 1 KiB, ten calls at a time
  freshet bench produce --count 2000 --for 5s

  # how fast they come out
  freshet bench consume --count 2000 --for 5s

  # schemas
  freshet bench registry --count 100 --for 5s`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newBenchProduce(env), newBenchConsume(env), newBenchRegistry(env))
	return cmd
}

func (o *benchOptions) addFlags(cmd *cobra.Command, count, workers int) {
	f := cmd.Flags()
	f.IntVar(&o.count, "count", count, "stop after this `number`")
	f.DurationVar(&o.limit, "for", 10*time.Second, "stop after this `duration`")
	f.IntVar(&o.workers, "parallel", workers, "how many calls are made at a `time`")
	f.StringVar(&o.plot, "plot", "", "draw the times of the calls into this SVG `file`")
	output.AddFlag(f, &o.format, output.FormatText, output.FormatJSON, output.FormatYAML)
}

func (o *benchOptions) addSize(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.size, "size", 1024, "`bytes` of each message")
	cmd.Flags().StringVar(&o.topic, "topic", "",
		"use this `topic`, which stays, in place of one that is made and removed")
}

func (o *benchOptions) check(cmd *cobra.Command) error {
	switch {
	case o.count < 1 || o.count > maxCount:
		return command.Usagef(cmd, "--count must be 1 to %d", maxCount)
	case o.limit < time.Second || o.limit > time.Hour:
		return command.Usagef(cmd, "--for must be 1s to 1h")
	case o.workers < 1 || o.workers > maxWorkers:
		return command.Usagef(cmd, "--parallel must be 1 to %d", maxWorkers)
	case o.size < 0 || o.size > maxSize:
		return command.Usagef(cmd, "--size must be 0 to %d", maxSize)
	}
	return nil
}

// measure makes calls, workers at a time, until there were enough or the time is
// over. call is given its number and how many things it may do, per at most; it says
// how many it did.
func (o *benchOptions) measure(ctx context.Context, name string, per int,
	call func(ctx context.Context, n, most int) (int, error),
) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	progress := o.env.Progress()
	defer progress.Clear()
	var mu sync.Mutex // guards what follows
	r, meter := &result{Name: name, Size: o.size, Workers: o.workers}, output.NewMeter()
	next, claimed := 0, 0
	var last error
	begin := time.Now()
	claim := func() (n, most int) {
		mu.Lock()
		defer mu.Unlock()
		if claimed >= o.count || ctx.Err() != nil {
			return 0, 0
		}
		most = min(per, o.count-claimed)
		claimed += most
		next++
		return next - 1, most
	}
	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() {
			for {
				n, most := claim()
				if most == 0 {
					return
				}
				start := time.Now()
				did, err := call(ctx, n, most)
				took := time.Since(start)
				mu.Lock()
				switch {
				case err != nil && ctx.Err() != nil: // the time is over
				case err != nil:
					r.Errors++
					last = err
				default:
					meter.Add(did)
					claimed -= most - did // somebody may still do it
					if r.Count += did; did > 0 {
						r.samples = append(r.samples, sample{start.Sub(begin), took})
					}
				}
				if r.Errors > r.Count+o.workers {
					cancel() // nothing works
				}
				o.showProgress(progress, name, meter, time.Since(begin))
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	r.finish(time.Since(begin))
	if r.Count == 0 && last != nil {
		return nil, last
	}
	return r, nil
}

// showProgress draws a bar of what is further: the number or the time.
func (o *benchOptions) showProgress(p *output.Progress, name string, m *output.Meter, since time.Duration) {
	const width = 30
	part := min(1, max(float64(m.Count())/float64(o.count), since.Seconds()/o.limit.Seconds()))
	full := int(math.Round(part * width))
	p.Printf("%s %s%s %3.0f %%  %d, %.0f/s", name, strings.Repeat("█", full), strings.Repeat("░", width-full), part*100,
		m.Count(), m.PerSecond())
}

func (r *result) finish(took time.Duration) {
	r.Seconds = took.Seconds()
	r.PerSecond = float64(r.Count) / max(r.Seconds, 1e-9)
	r.MBPerSecond = r.PerSecond * float64(r.Size) / 1e6
	times := make([]time.Duration, len(r.samples))
	for i, s := range r.samples {
		times[i] = s.took
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return float64(times[min(len(times)-1, int(q*float64(len(times))))]) / float64(time.Millisecond)
	}
	r.P50, r.P90, r.P99, r.Max = at(0.5), at(0.9), at(0.99), at(1)
}

// show prints what was measured, and draws it.
func (o *benchOptions) show(r *result) error {
	if o.plot != "" {
		if err := contexts.WritePrivate(o.plot, r.svg()); err != nil {
			return err
		}
	}
	if o.format != output.FormatText {
		return output.Value(o.env.Out, o.format, r)
	}
	throughput := ""
	if r.MBPerSecond > 0 {
		throughput = fmt.Sprintf(", %.2f MB/s", r.MBPerSecond)
	}
	_, err := fmt.Fprintf(o.env.Out, "%s: %d in %.1f s, %d errors\nrate:  %.0f/s%s (%d calls at a time)\ncalls: p50 "+
		"%.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms\n",
		r.Name, r.Count, r.Seconds, r.Errors, r.PerSecond, throughput, r.Workers, r.P50, r.P90, r.P99, r.Max)
	return err
}

// withTopic hands over a topic, which is removed afterwards when it was made here.
func (o *benchOptions) withTopic(ctx context.Context, use func(*client.Topic) error) (err error) {
	c, err := o.env.ClusterClient(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.topic != "" {
		return use(c.Topic(o.topic))
	}
	topic := c.Topic(temporary())
	if err := topic.Create(ctx, client.TopicOptions{Partitions: 1}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, removing(ctx, func(ctx context.Context) error { return topic.Delete(ctx, true) }))
	}()
	return use(topic)
}

// temporary is a name that nobody else has.
func temporary() string { return fmt.Sprintf("bench-%x", time.Now().UnixNano()) }

// removing tidies up, also after an interrupt.
func removing(ctx context.Context, remove func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := remove(ctx); err != nil && !errors.Is(err, client.ErrNotFound) {
		return fmt.Errorf("removing what was made for the measurement: %w", err)
	}
	return nil
}
