package kafka

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

// trial is one execution of a row on one broker. Its connections are closed at its end,
// so that they do not affect the next measurement.
type trial struct {
	ctx   context.Context
	k     *broker
	topic string // used by this trial only

	closers    []func()
	onPrepared func() // called after each prepare, before the measured part; may be nil
	began      time.Time
	// excludedTime and excludedCPU are the elapsed time and CPU time spent in prepare, which are
	// subtracted. startCPU is the broker's CPU time at the start of the trial.
	excludedTime time.Duration
	excludedCPU  time.Duration
	startCPU     time.Duration
	startWritten int64
}

// switchTo switches the trial to another broker and restarts the measurement.
func (t *trial) switchTo(k *broker) (err error) {
	t.k, t.began, t.excludedTime, t.excludedCPU = k, time.Now(), 0, 0
	if t.startWritten, err = process.Written(k.pid); err != nil {
		return err
	}
	t.startCPU, err = process.CPU(k.pid)
	return err
}

// run executes one trial.
func (s *variant) run(b *testing.B, topic string, prepared func()) (got sample, err error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	t := &trial{ctx: ctx, topic: topic, onPrepared: prepared}
	defer func() {
		for _, end := range slices.Backward(t.closers) {
			end()
		}
	}()
	if err := t.switchTo(s.k); err != nil {
		return got, err
	}
	if got.outcome, err = s.do(t); err != nil {
		return got, err
	}
	got.took = time.Since(t.began) - t.excludedTime
	settled, err := t.k.settle(ctx)
	if err != nil {
		return got, err
	}
	after, err := process.CPU(t.k.pid)
	if err != nil {
		return got, err
	}
	idle := time.Duration(t.k.idle * float64(got.took+settled))
	got.cpu = max(0, after-t.startCPU-t.excludedCPU-idle)
	written, err := process.Written(t.k.pid)
	if err != nil {
		return got, err
	}
	got.written = written - t.startWritten
	got.resident, err = process.Resident(t.k.pid)
	return got, err
}

// prepare runs f and excludes its elapsed time and CPU time from the measurement.
func (t *trial) prepare(f func() error) error {
	began := time.Now()
	before, err := process.CPU(t.k.pid)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := process.CPU(t.k.pid)
	t.excludedTime, t.excludedCPU = t.excludedTime+time.Since(began), t.excludedCPU+after-before
	if t.onPrepared != nil {
		t.onPrepared()
	}
	return err
}

// client opens a client that is closed at the end of the trial.
func (t *trial) client(opts ...kgo.Opt) (*kgo.Client, error) {
	c, err := t.k.client(opts...)
	if err == nil {
		t.closers = append(t.closers, c.Close)
	}
	return c, err
}

// each runs do in n goroutines and joins their errors.
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

// profile saves a CPU profile and then an execution trace of Freshet to FILE.pprof and
// FILE.trace, and repeats trials of the row until both are written.
func profile(b *testing.B, i int, own *broker, file string) error {
	b.Helper()
	done := make(chan error, 1)
	start := sync.OnceFunc(func() {
		go func() {
			err := process.Save(b.Context(), own.ops+"/debug/pprof/profile?seconds=4", file+".pprof")
			done <- errors.Join(err, process.Save(b.Context(), own.ops+"/debug/pprof/trace?seconds=2", file+".trace"))
		}()
	})
	s := rows[i].variants([]*broker{own})[0]
	for n := 0; ; n++ {
		if _, err := s.run(b, fmt.Sprintf("profile-%d-%d", i, n), start); err != nil {
			return err
		}
		start() // for rows that do not call prepare
		select {
		case err := <-done:
			return err
		default:
		}
	}
}
