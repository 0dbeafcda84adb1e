package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// history records the calls of concurrent clients of one journal, on several members, and
// their results.
type history struct {
	t     testing.TB
	began time.Time
	seed  uint64

	timeout time.Duration // of a client's call

	mu       sync.Mutex
	calls    []call            // protected by mu
	observed map[uint64]string // record by position, over all readers; protected by mu
	wrong    int               // protected by mu
	tried    atomic.Int64
	failed   atomic.Int64
	success  atomic.Int64 // when the last append was acknowledged, since began
}

// callTimeout is the timeout of a client's call while faults are injected.
const callTimeout = time.Second

// call is an append or a call of Last.
type call struct {
	from, to time.Duration
	last     uint64   // the returned position; 0 when the call failed
	records  []string // of an append
	conflict bool
}

func newHistory(t testing.TB) *history {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &history{t: t, began: time.Now(), seed: seed, timeout: callTimeout, observed: map[uint64]string{}}
}

func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) wrongf(format string, args ...any) {
	h.t.Errorf(format, args...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong++
}

func (h *history) note(c call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// observe records that a client read a record; every reader must get the same one there.
func (h *history) observe(position uint64, record string) {
	h.mu.Lock()
	before, known := h.observed[position]
	h.observed[position] = record
	h.mu.Unlock()
	if known && before != record {
		h.wrongf("position %d: got %q and %q, want one record", position, before, record)
	}
}

// client is one sequential client of a member's journal.
type client struct {
	h     *history
	name  string
	j     engine.Journal
	rng   *rand.Rand
	state []string // the whole journal as last read
	count int
}

func (h *history) client(n int, j engine.Journal) *client {
	return &client{h: h, name: fmt.Sprintf("c%d", n), j: j, rng: rand.New(rand.NewPCG(h.seed, uint64(n)))}
}

// run makes random calls until the context ends.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.step(ctx)
	}
}

func (c *client) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.h.timeout)
	defer cancel()
	switch n := c.rng.IntN(20); {
	case n == 0:
		c.snapshot(ctx)
	case n < 8:
		c.last(ctx)
	default:
		c.append(ctx)
	}
}

// tolerate counts a failed call and fails the test unless the error is retryable, or the time of the call is over.
func (c *client) tolerate(ctx context.Context, doing string, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	c.h.failed.Add(1)
	if errs.KindOf(err) != errs.Unavailable && !errors.Is(err, engine.ErrCompacted) &&
		!errors.Is(err, context.DeadlineExceeded) {
		c.h.wrongf("%s: got error %v, want none or a retryable one", doing, err)
	}
}

// catchUp reads the records since the last call.
func (c *client) catchUp(ctx context.Context) error {
	_, err := c.j.Replay(ctx, uint64(len(c.state)), func(position uint64, record []byte) error {
		if want := uint64(len(c.state)) + 1; position != want {
			c.h.wrongf("replay: got position %d, want %d", position, want)
		}
		c.state = append(c.state, string(record))
		c.h.observe(position, string(record))
		return nil
	})
	if !errors.Is(err, engine.ErrCompacted) {
		return err
	}
	position, r, err := c.j.LoadSnapshot(ctx)
	if err != nil {
		return err
	}
	if r == nil {
		c.h.wrongf("got no snapshot of a compacted journal, want one")
		return nil
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	state := split(text)
	if uint64(len(state)) != position || len(state) < len(c.state) {
		c.h.wrongf("got a snapshot of %d records at %d, want one of at least %d", len(state), position, len(c.state))
		return nil
	}
	c.state = state
	for i, record := range state {
		c.h.observe(uint64(i+1), record)
	}
	return nil
}

func split(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		lines = append(lines, strings.TrimSuffix(string(line), "\n"))
	}
	return lines
}

func (c *client) append(ctx context.Context) {
	if err := c.catchUp(ctx); err != nil {
		c.tolerate(ctx, "replay", err)
		return
	}
	made := call{from: c.h.now()}
	var records [][]byte
	for range 1 + c.rng.IntN(3) {
		record := fmt.Sprintf("%s/%d", c.name, c.count)
		c.count++
		made.records = append(made.records, record)
		records = append(records, []byte(record))
	}
	c.h.tried.Add(1)
	after := uint64(len(c.state))
	last, err := c.j.Append(ctx, after, records...)
	made.to = c.h.now()
	switch {
	case err == nil:
		made.last = last
		c.h.success.Store(int64(made.to))
		if want := after + uint64(len(records)); last != want {
			c.h.wrongf("append after %d: got %d, want %d", after, last, want)
		}
	case errors.Is(err, engine.ErrConflict):
		made.conflict = true
		if err := c.catchUp(ctx); err == nil && uint64(len(c.state)) == after {
			c.h.wrongf("conflict after %d: got no new record, want the winning one", after)
		}
	default:
		c.tolerate(ctx, "append", err)
	}
	c.h.note(made)
}

func (c *client) last(ctx context.Context) {
	made := call{from: c.h.now()}
	last, err := c.j.Last(ctx)
	if err != nil {
		c.tolerate(ctx, "last", err)
		return
	}
	made.to, made.last = c.h.now(), last
	c.h.note(made)
}

func (c *client) snapshot(ctx context.Context) {
	err := c.j.SaveSnapshot(ctx, uint64(len(c.state)), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(c.state, "\n"))
		return err
	})
	if err != nil {
		c.tolerate(ctx, "snapshot", err)
	}
}

// check compares the results that clients got with the final content of the journal. It
// returns the number of acknowledged records, and how many of them are lost.
func (h *history) check(j engine.Journal) (checked, lost int) {
	h.t.Helper()
	final := (&history{t: h.t, observed: h.observed}).client(0, j)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		// Like a new member, final starts from the snapshot.
		err := final.catchUp(ctx)
		var last uint64
		if err == nil {
			last, err = j.Last(ctx)
		}
		if err == nil && last == uint64(len(final.state)) {
			break
		}
		if ctx.Err() != nil {
			h.t.Fatalf("after the faults: got %d of %d records and error %v, want the journal",
				len(final.state), last, err)
		}
	}
	at := map[string]uint64{}
	for i, record := range final.state {
		if _, twice := at[record]; twice {
			h.wrongf("record %q: got it twice, want it once", record)
		}
		at[record] = uint64(i + 1)
	}
	for position, record := range h.observed {
		if position > uint64(len(final.state)) || final.state[position-1] != record {
			h.wrongf("position %d: got another record or none, want %q, which a client read there", position, record)
		}
	}
	for _, c := range h.calls {
		n, l := h.checkAppend(c, at)
		checked, lost = checked+n, lost+l
	}
	h.checkOrder(at)
	return checked, lost
}

func (h *history) checkAppend(c call, at map[string]uint64) (checked, lost int) {
	for i, record := range c.records {
		position := at[record]
		switch {
		case c.last > 0:
			checked++
			if position == 0 {
				h.t.Errorf("record %q is lost, want it at %d, as acknowledged", record, c.last)
				lost++
			} else if want := c.last - uint64(len(c.records)-1-i); position != want {
				h.wrongf("record %q: got it at %d, want it at %d", record, position, want)
			}
		case c.conflict && position != 0:
			h.wrongf("record %q: got it at %d, want it nowhere, because its append conflicted", record, position)
		case (position == 0) != (at[c.records[0]] == 0) || position != 0 && position != at[c.records[0]]+uint64(i):
			h.wrongf("append of %q: got part of it, want all or none", c.records)
		}
	}
	return checked, lost
}

// checkOrder checks linearizability: a call that begins after another call returned a
// position returns that position or a later one, and no call returns a position whose
// append had not begun.
func (h *history) checkOrder(at map[string]uint64) {
	begun := map[uint64]time.Duration{} // by position
	for _, c := range h.calls {
		for _, r := range c.records {
			if p := at[r]; p != 0 {
				begun[p] = c.from
			}
		}
	}
	for _, c := range h.calls {
		if c.last == 0 {
			continue
		}
		if began := begun[c.last]; began > c.to {
			h.wrongf("got the end %d at %s, but its append began at %s", c.last, c.to, began)
		}
		for _, other := range h.calls {
			if other.last == 0 || other.to >= c.from {
				continue
			}
			if other.last > c.last || len(c.records) > 0 && other.last == c.last {
				h.wrongf("got %d for a call at %s to %s, want more than the %d returned at %s", c.last, c.from,
					c.to, other.last, other.to)
			}
		}
	}
}
