package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/bench/process"
)

// turn is one go of a row at one broker. What it opened is closed behind it, so that
// no row is measured beside the connections of others.
type turn struct {
	ctx   context.Context
	k     *broker
	topic string // that nobody else uses

	opened   []func()
	prepared func() // called when what is measured begins; may be nil
	began    time.Time
	// What was spent before what is measured, and the processor time of the broker when
	// the turn began.
	before    time.Duration
	beforeCPU time.Duration
	startCPU  time.Duration
}

// at moves the turn to another broker; what was before does not count.
func (t *turn) at(k *broker) (err error) {
	t.k, t.began, t.before, t.beforeCPU = k, time.Now(), 0, 0
	t.startCPU, err = process.CPU(k.pid)
	return err
}

// run takes a turn.
func (s *side) run(b *testing.B, topic string, prepared func()) (got sample, err error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	t := &turn{ctx: ctx, topic: topic, prepared: prepared}
	defer func() {
		for _, end := range slices.Backward(t.opened) {
			end()
		}
	}()
	if err := t.at(s.k); err != nil {
		return got, err
	}
	if got.outcome, err = s.do(t); err != nil {
		return got, err
	}
	got.took = time.Since(t.began) - t.before
	after, err := process.CPU(t.k.pid)
	got.cpu = after - t.startCPU - t.beforeCPU
	return got, err
}

// prepare leaves what f does out of the measurement.
func (t *turn) prepare(f func() error) error {
	began := time.Now()
	before, err := process.CPU(t.k.pid)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := process.CPU(t.k.pid)
	t.before, t.beforeCPU = t.before+time.Since(began), t.beforeCPU+after-before
	if t.prepared != nil {
		t.prepared()
	}
	return err
}

// client connects, for this turn.
func (t *turn) client(opts ...kgo.Opt) (*kgo.Client, error) {
	c, err := t.k.client(opts...)
	if err == nil {
		t.opened = append(t.opened, c.Close)
	}
	return c, err
}

// each does something in as many goroutines, and returns when all are done.
func each(n int, do func(i int) error) error {
	failures := make(chan error, n)
	for i := range n {
		go func() { failures <- do(i) }()
	}
	var err error
	for range n {
		err = errors.Join(err, <-failures)
	}
	return err
}

// profile keeps a processor profile and then an execution trace of more turns of our
// side, in FILE.pprof and FILE.trace.
func profile(b *testing.B, i int, own *broker, file string) error {
	b.Helper()
	done := make(chan error, 1)
	start := sync.OnceFunc(func() {
		go func() {
			err := process.Save(b.Context(), own.ops+"/debug/pprof/profile?seconds=4", file+".pprof")
			done <- errors.Join(err, process.Save(b.Context(), own.ops+"/debug/pprof/trace?seconds=2", file+".trace"))
		}()
	})
	s := rows[i].sides([]*broker{own})[0]
	for n := 0; ; n++ {
		if _, err := s.run(b, fmt.Sprintf("profile-%d-%d", i, n), start); err != nil {
			return err
		}
		start() // where nothing was prepared
		select {
		case err := <-done:
			return err
		default:
		}
	}
}
