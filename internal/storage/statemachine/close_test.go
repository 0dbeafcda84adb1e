package statemachine_test

import (
	"context"
	"errors"
	"testing"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

func TestClosedMachine(t *testing.T) {
	t.Parallel()
	m := open(t, openJournal(t), options())
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Update(t.Context(), add("x")); !errors.Is(err, statemachine.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := m.Fresh(t.Context()); !errors.Is(err, statemachine.ErrClosed) {
		t.Fatal(err)
	}
}

// slowJournal blocks appends until their context ends.
type slowJournal struct {
	engine.Journal
	begun chan struct{}
}

func (j *slowJournal) Append(ctx context.Context, after uint64, records ...[]byte) (uint64, error) {
	close(j.begun)
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestMachineClosedMeanwhile checks that an update during Close returns ErrClosed, and not the
// error of the cancelled append.
func TestMachineClosedMeanwhile(t *testing.T) {
	t.Parallel()
	j := &slowJournal{openJournal(t), make(chan struct{})}
	m := open(t, j, options())
	failed := make(chan error)
	go func() {
		_, err := m.Update(context.WithoutCancel(t.Context()), add("x"))
		failed <- err
	}()
	<-j.begun
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, statemachine.ErrClosed) {
		t.Fatalf("update: got error %v, want %v", err, statemachine.ErrClosed)
	}
}
