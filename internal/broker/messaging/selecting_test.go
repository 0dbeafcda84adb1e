package messaging_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

func (c *cluster) filter(text string) *filter.Filter {
	c.t.Helper()
	f, err := filter.Compile(text)
	c.do(err)
	return f
}

// nextMatches calls Next until it has n matches.
func (c *cluster) nextMatches(tail *messaging.FilteredTail, n int) (payloads []string) {
	c.t.Helper()
	for len(payloads) < n {
		found, err := tail.Next(c.t.Context(), 10*time.Second)
		c.do(err)
		for i := range found {
			payloads = append(payloads, string(found[i].Payload))
		}
	}
	return payloads
}

func TestFilteredTail(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 2)
	for i := range 100 {
		c.produce(name, text(fmt.Sprintf(`{"n":%d}`, i)))
	}
	c.produce(name, text("not JSON"))
	tail, err := c.Searcher.Tail(t.Context(), name, messaging.TailFrom{Earliest: true}, c.filter(`payload.n >= 98`))
	c.do(err)
	if got := c.nextMatches(tail, 2); len(got) != 2 {
		t.Errorf("stored messages: got %q, want two", got)
	}
	last := c.produce(name, text(`{"n":200}`))
	if got := c.nextMatches(tail, 1); got[0] != `{"n":200}` {
		t.Errorf("a new message: got %q, want the one with n=200", got)
	}
	progress, id := tail.Progress()
	if progress.Scanned != 102 || progress.Matched != 3 || progress.Failed != 1 || id != last.ID {
		t.Errorf("progress: got %+v after %v, want 3 of 102 messages, one failure, after %v", progress, id, last.ID)
	}
	if got, err := tail.Next(t.Context(), time.Millisecond); err != nil || len(got) != 0 {
		t.Errorf("at the end: got %d messages, %v, want none", len(got), err)
	}
	// A tail that continues at the id of the progress gets what is published afterwards.
	after, err := c.Searcher.Tail(t.Context(), name, messaging.TailFrom{After: &id}, c.filter(`payload.n > 200`))
	c.do(err)
	c.produce(name, text(`{"n":201}`))
	if got := c.nextMatches(after, 1); got[0] != `{"n":201}` {
		t.Errorf("after the progress: got %q, want the message with n=201", got)
	}
	_, err = c.Searcher.Tail(t.Context(), topic("missing"), messaging.TailFrom{}, c.filter(`true`))
	wantErr(t, err, messaging.ErrNoTopic)
}

// TestFilteredTailWithNewSchemas checks that an open tail decodes messages by a schema that the topic got
// after the tail began.
func TestFilteredTailWithNewSchemas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	tail, err := c.Searcher.Tail(t.Context(), name, messaging.TailFrom{}, c.filter(`payload.s == "abd"`))
	c.do(err)
	c.produce(name, text("\x06abd"))
	if got, err := tail.Next(t.Context(), 10*time.Second); err != nil || len(got) != 0 {
		t.Errorf("without a schema: got %d messages, %v, want none", len(got), err)
	}
	_, err = c.Schemas.Add(t.Context(), name, messaging.Schema{
		Type: messaging.SchemaAvro, Text: `{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}`,
	}, true)
	c.do(err)
	c.produce(name, text("\x06abd"))
	if got := c.nextMatches(tail, 1); got[0] != "\x06abd" {
		t.Errorf("with the schema: got %q, want the message", got)
	}
}

// TestAttackCostlyFilterOfTail follows a topic with an expression whose evaluation costs too much for large
// messages: these count as failed, and the tail continues.
func TestAttackCostlyFilterOfTail(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	costly := `{"n":[` + strings.Repeat("1,", 200_000) + `1]}`
	for range 3 {
		c.produce(name, text(costly))
	}
	c.produce(name, text(`{"n":[2]}`))
	tail, err := c.Searcher.Tail(t.Context(), name, messaging.TailFrom{Earliest: true},
		c.filter(`payload.n.exists(x, x == 2) || payload.n.exists(x, x == 3)`))
	c.do(err)
	if got := c.nextMatches(tail, 1); got[0] != `{"n":[2]}` {
		t.Errorf("got %.40q, want the small message", got)
	}
	if progress, _ := tail.Progress(); progress.Failed != 3 || progress.Scanned != 4 {
		t.Errorf("got %+v, want three failures of four messages", progress)
	}
}

func TestPeekWithFilter(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	c.subscribe(name, "s")
	for i := range 300 {
		c.produce(name, text(fmt.Sprintf(`{"n":%d}`, i)))
	}
	first := c.receiveOne(name, "s")
	c.ack(name, "s", first.ID)
	peek := func(filter string, position int, after *names.MessageID) messaging.Peeked {
		t.Helper()
		opts := messaging.PeekOptions{Position: position, After: after}
		if filter != "" {
			opts.Filter = c.filter(filter)
		}
		peeked, err := c.Searcher.Peek(t.Context(), name, "s", opts)
		c.do(err)
		return peeked
	}
	for _, test := range []struct {
		filter   string
		position int
		want     string
	}{
		{`payload.n % 100 == 0`, 1, `{"n":100}`}, // the one with n=0 is acknowledged
		{`payload.n % 100 == 0`, 2, `{"n":200}`},
		{`payload.n % 100 == 0`, 3, ""},
		{`payload.n > 200`, 99, `{"n":299}`},
		{"", 1, `{"n":1}`},
		{"", 299, `{"n":299}`},
		{"", 300, ""},
	} {
		got := peek(test.filter, test.position, nil)
		if got.Message == nil {
			if test.want != "" || got.More {
				t.Errorf("%q at %d: got nothing, more %v, want %s", test.filter, test.position, got.More, test.want)
			}
			continue
		}
		payload := string(got.Message.Payload)
		if payload != test.want || !got.More || got.Last != got.Message.ID {
			t.Errorf("%q at %d: got %s and %+v, want %s", test.filter, test.position, payload, got, test.want)
		}
	}
	hundred := peek(`payload.n == 100`, 1, nil)
	if got := peek(`payload.n % 100 == 0`, 1, &hundred.Last); got.Message == nil ||
		string(got.Message.Payload) != `{"n":200}` || got.Progress.Scanned != 100 {
		t.Errorf("after n=100: got %+v, want n=200 after 100 messages", got)
	}
	if got := peek(`payload.missing`, 1, nil); got.Progress.Failed != 299 || got.Progress.Failure == nil {
		t.Errorf("with a missing field: got %+v, want 299 failures", got.Progress)
	}
	for _, position := range []int{0, 10_001} {
		_, err := c.Searcher.Peek(t.Context(), name, "s", messaging.PeekOptions{Position: position})
		wantErr(t, err, engine.ErrInvalid)
	}
	_, err := c.Searcher.Peek(t.Context(), name, "missing", messaging.PeekOptions{Position: 1})
	wantErr(t, err, messaging.ErrNoSubscription)
	c.create("wide", 2)
	_, err = c.Searcher.Peek(t.Context(), topic("wide"), "s", messaging.PeekOptions{Position: 1})
	wantErr(t, err, messaging.ErrPartitioned)
}

// TestPeekIsBounded peeks with a filter that selects nothing: one call reads a limited number of messages,
// and the next one continues after them.
func TestPeekIsBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	c.subscribe(name, "s")
	const batch, batches = 1000, 11
	values := make([][]byte, batch)
	for i := range values {
		values[i] = []byte("x")
	}
	for range batches {
		c.do(c.appendBatch(name, kafkaBatch(values...)))
	}
	var after *names.MessageID
	scanned, calls := int64(0), 0
	for more := true; more; calls++ {
		got, err := c.Searcher.Peek(t.Context(), name, "s",
			messaging.PeekOptions{Position: 1, Filter: c.filter(`false`), After: after})
		c.do(err)
		if got.Message != nil || got.Progress.Scanned > 10_000+32 {
			t.Fatalf("got %v after %d messages, want none after at most 10,032", got.Message, got.Progress.Scanned)
		}
		scanned, more, after = scanned+got.Progress.Scanned, got.More, &got.Last
	}
	if scanned != batch*batches || calls < 2 {
		t.Errorf("got %d messages in %d calls, want %d in at least two", scanned, calls, batch*batches)
	}
}
