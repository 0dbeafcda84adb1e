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

	"freshet.dev/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
)

// The limits of a benchmark run.
const (
	maxCount   = 10_000_000
	maxSize    = 1 << 20
	maxWorkers = 256
)

// benchOptions are the common flags of the bench commands.
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

// result is the result of a benchmark. Percentiles are in milliseconds.
type result struct {
	Name      string  `json:"name"`
	Count     int     `json:"count"`
	Errors    int     `json:"errors"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	// MBPerSecond is the payload throughput in millions of bytes per second.
	MBPerSecond float64 `json:"mbPerSecond,omitempty"`
	Size        int     `json:"size,omitempty"`
	Workers     int     `json:"workers"`
	P50         float64 `json:"p50Ms"`
	P90         float64 `json:"p90Ms"`
	P99         float64 `json:"p99Ms"`
	Max         float64 `json:"maxMs"`

	samples []sample
}

// sample is one call: its start, relative to the start of the run, and its duration.
type sample struct{ at, took time.Duration }

func newBench(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:   "bench",
		Short: "Measure the performance of a server",
		Long: `Measure the performance of a server for one client: producing, consuming, and the schema
registry. Each run ends after --count operations or after --for, whichever comes first. It
uses a temporary topic or subject and removes it at the end. A run loads the server as
much as it can, which affects other clients.`,
		Example: `  # produce messages of 1 KiB with ten concurrent calls
  freshet bench produce --count 2000 --for 5s

  # consume
  freshet bench consume --count 2000 --for 5s

  # register and read schemas
  freshet bench registry --count 100 --for 5s`,
	}, newBenchProduce(env), newBenchConsume(env), newBenchRegistry(env))
}

func (o *benchOptions) addFlags(cmd *cobra.Command, count, workers int) {
	f := cmd.Flags()
	f.IntVar(&o.count, "count", count, "stop after this `number` of operations")
	f.DurationVar(&o.limit, "for", 10*time.Second, "stop after this `duration`")
	f.IntVar(&o.workers, "parallel", workers, "`number` of concurrent calls")
	f.StringVar(&o.plot, "plot", "", "plot the latency of the calls into this SVG `file`")
	output.AddFlag(f, &o.format, output.FormatText, output.FormatJSON, output.FormatYAML)
}

func (o *benchOptions) addSize(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.size, "size", 1024, "size of each message in `bytes`")
	cmd.Flags().StringVar(&o.topic, "topic", "",
		"use this existing `topic`, and do not remove it (default: a temporary topic)")
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

// measure makes concurrent calls until the count or the time is reached. call gets its
// number and the maximum of operations that it may do, at most per; it returns how many it
// did.
func (o *benchOptions) measure(ctx context.Context, name string, per int,
	call func(ctx context.Context, n, most int) (int, error),
) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	progress := o.env.Progress()
	defer progress.Clear()
	var mu sync.Mutex // protects the variables up to begin, and progress
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
				case err != nil && ctx.Err() != nil: // the run has ended
				case err != nil:
					r.Errors++
					last = err
				default:
					meter.Add(did)
					claimed -= most - did // another call can do the rest
					if r.Count += did; did > 0 {
						r.samples = append(r.samples, sample{start.Sub(begin), took})
					}
				}
				if r.Errors > r.Count+o.workers {
					cancel() // most calls fail
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

// showProgress draws a progress bar by count or time, whichever is further.
func (o *benchOptions) showProgress(p *output.Progress, name string, m *output.Meter, since time.Duration) {
	const width = 30
	part := min(1, max(float64(m.Count())/float64(o.count), since.Seconds()/o.limit.Seconds()))
	full := int(math.Round(part * width))
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	p.Printf("%s %s %3.0f %%  %d, %.0f/s", name, bar, part*100, m.Count(), m.PerSecond())
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

// show prints the result of measure, and writes the plot.
func (o *benchOptions) show(r *result, err error) error {
	if err != nil {
		return err
	}
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
	return o.env.Printf("%s: %d in %.1f s, %d errors\nrate:  %.0f/s%s (%d concurrent calls)\ncalls: p50 "+
		"%.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms\n",
		r.Name, r.Count, r.Seconds, r.Errors, r.PerSecond, throughput, r.Workers, r.P50, r.P90, r.P99, r.Max)
}

// withTopic calls use with the topic of --topic, or with a temporary topic that it removes
// afterwards.
func (o *benchOptions) withTopic(ctx context.Context, use func(*client.Topic) error) (err error) {
	c, err := o.env.ClusterClient(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.topic != "" {
		return use(c.Topic(o.topic))
	}
	topic := c.Topic(temporaryName())
	if err := topic.Create(ctx, client.TopicOptions{Partitions: 1}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cleanup(ctx, func(ctx context.Context) error { return topic.Delete(ctx, true) }))
	}()
	return use(topic)
}

// temporaryName returns a unique name.
func temporaryName() string { return fmt.Sprintf("bench-%x", time.Now().UnixNano()) }

// cleanup calls a cleanup function with a new timeout, so that it also runs after an
// interrupt.
func cleanup(ctx context.Context, remove func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := remove(ctx); err != nil && !errors.Is(err, client.ErrNotFound) {
		return fmt.Errorf("removing the temporary objects of the benchmark: %w", err)
	}
	return nil
}
