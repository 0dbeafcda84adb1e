package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/test/ensemble/history"
)

// Finish stops the writers, waits up to timeout until every acknowledged message was
// delivered, stops the readers, and then checks every object that was created or may have
// been: whether each member returns it and whether it is usable. All faults must be healed.
func (l *Load) Finish(ctx context.Context, timeout time.Duration) {
	l.stopWriting()
	deadline := time.Now().Add(timeout)
	done := make(chan struct{})
	go func() { l.writing.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(timeout):
	case <-ctx.Done():
	}
	for l.outstanding() > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	l.stopReading()
	l.reading.Wait()
	l.writing.Wait()
	w := &worker{Load: l, name: "finish", rand: rand.New(rand.NewPCG(l.o.Seed, 0))}
	for _, id := range sorted(l.ids) {
		if number, err := strconv.Atoi(id); err == nil {
			w.retryUnknown(ctx, func() history.Outcome { return w.readSchema(ctx, w.any(), number) })
		}
	}
	for _, thing := range sorted(l.created) {
		w.finish(ctx, thing)
	}
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// retryUnknown repeats a call until its outcome is known, at most ten times.
func (w *worker) retryUnknown(ctx context.Context, call func() history.Outcome) history.Outcome {
	outcome := call()
	for range 10 {
		if outcome != history.Unknown || !w.pause(ctx) {
			break
		}
		outcome = call()
	}
	return outcome
}

// finish looks up an object at every member and checks that it is usable.
func (w *worker) finish(ctx context.Context, thing string) {
	var exists bool
	for _, m := range w.members {
		outcome := w.retryUnknown(ctx, func() history.Outcome {
			start := w.recorder.Now()
			var op history.Op
			if name, ok := strings.CutPrefix(thing, topicPrefix); ok {
				op = w.lookTopic(ctx, m, name)
			} else {
				op = w.lookAccount(ctx, m, strings.TrimPrefix(thing, accountPrefix))
			}
			w.recorder.Add(start, op)
			return op.Outcome
		})
		exists = outcome == history.OK
	}
	start := w.recorder.Now()
	err := w.checkUsable(ctx, thing, exists)
	op := history.Op{Kind: history.Finish, Client: w.name, Object: thing, Outcome: history.OK}
	if err != nil {
		op.Outcome, op.Note = history.Refused, err.Error()
	}
	w.recorder.Add(start, op)
}

// checkUsable checks an object that exists or does not: an existing topic can be used and deleted, a
// missing one can be created, and an existing account becomes ready.
func (w *worker) checkUsable(ctx context.Context, thing string, exists bool) error {
	m := w.any()
	if name, ok := strings.CutPrefix(thing, accountPrefix); ok {
		if !exists {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		ref := resources.Ref{Kind: resources.ServiceAccounts, Organization: organization, Name: name}
		_, err := m.resources.Wait(ctx, ref, func(o resources.Object) (bool, error) {
			return o.Condition("Ready").Status == "True", nil
		})
		return err
	}
	topic := m.client.Topic(strings.TrimPrefix(thing, topicPrefix))
	if !exists {
		if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
			return fmt.Errorf("creating a topic that does not exist: %w", err)
		}
	}
	if _, err := topic.Produce(ctx, client.Message{Value: []byte("x")}); err != nil {
		return fmt.Errorf("producing to a topic that exists: %w", err)
	}
	if err := topic.Delete(ctx, true); err != nil {
		return fmt.Errorf("deleting a topic that exists: %w", err)
	}
	return nil
}
