package messaging_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/ops/quota"
)

// letters returns a cluster with dead letters {"n":0}, {"n":1}, … of a topic t, and a replay of them.
func letters(t *testing.T, n int, options messaging.Options) (*cluster, messaging.ReplayOptions) {
	t.Helper()
	c := newCluster(t, options)
	opts := messaging.ReplayOptions{
		Source: c.create("t", 0), Letters: c.create("t-s-DLQ", 0), To: topic("t"), Limit: 1000,
	}
	for i := range n {
		m := text(fmt.Sprintf(`{"n":%d}`, i))
		m.Key = fmt.Sprint("k", i)
		m.Properties = []messaging.Property{{Key: "a", Value: "1"}, {Key: "ORIGIN_MESSAGE_ID", Value: "1:2:0"}}
		c.produce(opts.Letters, m)
	}
	return c, opts
}

func (c *cluster) replay(opts messaging.ReplayOptions) messaging.Replayed {
	c.t.Helper()
	done, err := c.Replayer.Replay(c.t.Context(), opts)
	c.do(err)
	return done
}

func TestReplay(t *testing.T) {
	t.Parallel()
	c, opts := letters(t, 5, messaging.Options{})
	retry := c.create("retry", 0)
	opts.To, opts.Filter = retry, c.filter(`payload.n >= 3 || payload.n == 0`)

	dry := opts
	dry.DryRun = true
	if got := c.replay(dry); got.Progress.Scanned != 5 || got.Progress.Matched != 3 || got.Sent != 0 || got.More {
		t.Errorf("dry run: got %+v, want 3 matches of 5 and none sent", got)
	}
	if list, err := c.Consumer.Subscriptions(t.Context(), opts.Letters); err != nil || len(list) != 0 {
		t.Errorf("after the dry run: got subscriptions %q, %v, want none", list, err)
	}
	if got, _ := c.search(retry, `true`, messaging.SearchOptions{}); len(got) != 0 {
		t.Errorf("after the dry run: got %q in the target, want nothing", got)
	}

	one := opts
	one.Limit = 1
	first := c.replay(one)
	if first.Sent != 1 || !first.More || first.Progress.Scanned != 1 {
		t.Errorf("with a limit of 1: got %+v, want one letter and more", first)
	}
	opts.After = &first.Last
	if got := c.replay(opts); got.Sent != 2 || got.Progress.Scanned != 4 || got.More {
		t.Errorf("afterwards: got %+v, want 2 of the other 4", got)
	}
	got, _ := c.search(retry, `properties == {"a": "1"} && key.startsWith("k")`, messaging.SearchOptions{})
	if want := []string{`{"n":0}`, `{"n":3}`, `{"n":4}`}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("in the target: got %q, want %q without the origin", got, want)
	}

	// The letters that the filter did not select stay, and can be sent to the topic itself.
	opts.To, opts.Filter, opts.After = topic("t"), nil, nil
	if got := c.replay(opts); got.Sent != 2 || got.Progress.Scanned != 2 {
		t.Errorf("without a filter: got %+v, want the other 2 letters", got)
	}
	if got := c.replay(opts); got.Sent != 0 || got.Progress.Scanned != 0 {
		t.Errorf("again: got %+v, want nothing", got)
	}
	if got, _ := c.search(opts.Letters, `true`, messaging.SearchOptions{}); len(got) != 5 {
		t.Errorf("in the dead-letter topic: got %q, want all five", got)
	}
}

func TestReplayErrors(t *testing.T) {
	t.Parallel()
	c, opts := letters(t, 1, messaging.Options{})
	for name, edit := range map[string]func(*messaging.ReplayOptions){
		"to the dead letters": func(o *messaging.ReplayOptions) { o.To = o.Letters },
		"missing target":      func(o *messaging.ReplayOptions) { o.To = topic("missing") },
		"missing letters":     func(o *messaging.ReplayOptions) { o.Letters = topic("missing") },
		"foreign id": func(o *messaging.ReplayOptions) {
			o.After = &names.MessageID{Ledger: 999, Partition: -1}
		},
	} {
		wrong := opts
		edit(&wrong)
		if _, err := c.Replayer.Replay(t.Context(), wrong); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if got := c.replay(opts); got.Sent != 1 {
		t.Errorf("after the errors: got %+v, want the letter", got)
	}
}

// TestReplayOfRejectedLetters replays a letter that the target rejects: it stays a dead letter and is
// counted, and the others are sent.
func TestReplayOfRejectedLetters(t *testing.T) {
	t.Parallel()
	c, opts := letters(t, 2, messaging.Options{})
	b := records.NewBuilder(nil, 0)
	b.Add(&records.Record{
		Value: []byte("rejected"), Headers: []records.Header{{Key: []byte("\x00a"), Value: []byte("1")}},
	})
	c.do(c.appendBatch(opts.Letters, b.Finish()))
	c.produce(opts.Letters, text(`{"n":7}`))
	got := c.replay(opts)
	if got.Progress.Matched != 4 || got.Sent != 3 || got.Progress.Failed != 1 || got.Progress.Failure == nil {
		t.Errorf("got %+v, want 3 of 4 letters and a failure", got)
	}
	left, err := c.Consumer.Peek(t.Context(), opts.Letters, messaging.ReplaySubscription, 1)
	if err != nil || string(left.Payload) != "rejected" {
		t.Errorf("the first letter that is left: got %q, %v, want the rejected one", left.Payload, err)
	}
	_, err = c.Consumer.Peek(t.Context(), opts.Letters, messaging.ReplaySubscription, 2)
	wantErr(t, err, messaging.ErrNoMessage)
}

// TestReplayEndsAtTheQuota checks that a replay pays for the bytes that it sends, as a client would, and ends
// when the quota of bytes per second is used up.
func TestReplayEndsAtTheQuota(t *testing.T) {
	t.Parallel()
	limits := quota.New(quota.Limits{quota.BytesPerSecond: 1}, nil).Organization("acme").Open("prod", quota.Limits{})
	c, opts := letters(t, 100, messaging.Options{Quota: limits})
	got := c.replay(opts)
	if got.Sent == 0 || got.Sent == 100 || !got.More || limits.Pause() == 0 {
		t.Errorf("got %+v and a pause of %v, want a part of the letters and a pause", got, limits.Pause())
	}
	opts.After = &got.Last
	if next := c.replay(opts); next.Sent == 0 || next.Progress.Scanned != next.Sent {
		t.Errorf("the next call: got %+v, want more letters", next)
	}
}

// TestAttackReplayedBefore sends messages whose idempotency keys are those that a replay could use: the
// replay still sends the letters.
func TestAttackReplayedBefore(t *testing.T) {
	t.Parallel()
	c, opts := letters(t, 0, messaging.Options{})
	letter := c.produce(opts.Letters, text(`{"n":0}`))
	for _, key := range []string{"replay-" + letter.ID.String(), letter.ID.String(), "replay:" + letter.ID.String()} {
		m := text("forged")
		m.IdempotencyKey = key
		c.produce(opts.To, m)
	}
	if got := c.replay(opts); got.Sent != 1 {
		t.Fatalf("got %+v, want one letter sent", got)
	}
	if found, _ := c.search(opts.To, `payload.n == 0`, messaging.SearchOptions{}); len(found) != 1 {
		t.Errorf("got %q in the target, want the letter", found)
	}
}
