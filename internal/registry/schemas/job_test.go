package schemas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/workpool"
)

// No writer waits for large work of another caller: large work does not start in the
// write lock.
func TestLargeWorkIsNotDoneInTheLock(t *testing.T) {
	t.Parallel()
	r := openRegistry(t, openJournal(t))
	fields := make([]string, 3_000)
	for i := range fields {
		fields[i] = fmt.Sprintf("field_with_a_rather_long_name_%d?", i)
	}
	large := &Draft{Type: Avro, Text: avroRecord("Large", fields...)}
	work := r.newJob(t.Context())
	work.parsed = map[parseID]parsedSchema{}
	if _, err := r.prepare(work.inLock(), r.machine.View(), "s", large, prepareOptions{}); !errors.Is(err, errStale) {
		t.Fatalf("parsing in the lock: got %v, want %v", err, errStale)
	}
	if _, err := r.prepare(r.newJob(t.Context()).inLock(), r.machine.View(), "s", &Draft{Type: Avro, Text: `"int"`},
		prepareOptions{}); err != nil {
		t.Errorf("parsing a small schema in the lock: %v", err)
	}
	// An import succeeds, because it parses before it takes the lock.
	from := openRegistry(t, openJournal(t))
	if _, err := from.Register(t.Context(), "s", large); err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err := from.Export(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	if done, err := r.Import(t.Context(), strings.NewReader(file.String()), nil); err != nil || done.Versions != 1 {
		t.Errorf("import: got %+v and %v, want one version", done, err)
	}
}

// A call ends when it exceeds its time limit or its client disconnects.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	r := openRegistry(t, openJournal(t))
	for i := range 3 {
		mustRegister(t, r, "s", avroRecord("R", fmt.Sprintf("f%d?", i)))
	}
	r.checkTime = time.Nanosecond
	_, err := r.CheckSubjectVersions(t.Context(), "s", &Draft{Type: Avro, Text: avroRecord("R", "new?")})
	if !errors.Is(err, ErrInvalidSchema) && !errors.Is(err, workpool.ErrTooCostly) ||
		!strings.Contains(err.Error(), "1ns") {
		t.Errorf("call over its time limit: got %v, want %v with the limit", err, workpool.ErrTooCostly)
	}
	r.checkTime = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Register(ctx, "s", &Draft{Type: Avro, Text: avroRecord("R", "other?")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: got %v, want %v", err, context.Canceled)
	}
}
