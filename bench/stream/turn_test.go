package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
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

	opened []func()
	// What was spent before what is measured.
	before    time.Duration
	beforeCPU time.Duration
}

// run takes a turn.
func (s *side) run(b *testing.B, topic string) (got sample, err error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	t := &turn{ctx: ctx, k: s.k, topic: topic}
	defer func() {
		for _, end := range slices.Backward(t.opened) {
			end()
		}
	}()
	before, err := process.CPU(s.k.pid)
	if err != nil {
		return got, err
	}
	began := time.Now()
	if got.outcome, err = s.do(t); err != nil {
		return got, err
	}
	got.took = time.Since(began) - t.before
	after, err := process.CPU(s.k.pid)
	got.cpu = after - before - t.beforeCPU
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

// profile keeps a processor profile of one more turn of our side.
func profile(b *testing.B, i int, own *broker, file string) error {
	b.Helper()
	done := make(chan error, 1)
	go func() { done <- save(own.ops+"/debug/pprof/profile?seconds=4", file) }()
	s := rows[i].sides([]*broker{own})[0]
	for n := 0; ; n++ {
		select {
		case err := <-done:
			return err
		default:
		}
		if _, err := s.run(b, fmt.Sprintf("profile-%d-%d", i, n)); err != nil {
			return errors.Join(err, <-done)
		}
	}
}

func save(url, file string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return errors.Join(err, f.Close())
}
