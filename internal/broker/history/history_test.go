package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

// world is a cluster whose history is recorded.
type world struct {
	t      *testing.T
	engine engine.Engine
	broker *messaging.Broker
	groups *groups.Coordinator
	path   string
	full   bool // the disk
	log    bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, engine: eng, path: filepath.Join(t.TempDir(), "history.gz")}
	quiet := slog.New(slog.DiscardHandler)
	if w.broker, err = messaging.Open(context.Background(), eng, messaging.Options{Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	if w.groups, err = groups.Open(context.Background(), eng, groups.Options{Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) close() {
	_ = w.groups.Close()
	_ = w.broker.Close()
	_ = w.engine.Close()
}

func (w *world) recorder() *Recorder {
	return New(Options{
		Path: w.path, HasSpace: func() bool { return !w.full }, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Clusters: func() []Source {
			return []Source{{
				UID: "u", Statistics: w.broker.Statistics, Kafka: w.broker.Kafka,
				Groups: func() *groups.Coordinator { return w.groups },
			}}
		},
	})
}

func topicNamed(local string) names.Topic {
	return names.Topic{Namespace: names.PublicDefault, Local: local}
}

// create creates a topic and returns its id.
func (w *world) create(local string) uint64 {
	w.t.Helper()
	err := w.broker.Catalogue.CreateTopic(context.Background(), topicNamed(local), messaging.NewTopic{})
	if err != nil {
		w.t.Fatal(err)
	}
	id, ok := w.broker.Catalogue.IDOf(context.Background(), topicNamed(local))
	if !ok {
		w.t.Fatalf("topic %s does not exist", local)
	}
	return uint64(id)
}

func (w *world) produce(local string, n int) {
	w.t.Helper()
	for range n {
		if _, err := w.broker.Producer.Produce(context.Background(), topicNamed(local),
			&messaging.Message{SchemaVersion: messaging.NoSchema, Payload: []byte("four")}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run runs a recorder until the returned function is called.
func run(r *Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func answer(t *testing.T, r *Recorder, key Key, of Range) *Answer {
	t.Helper()
	q, err := NewQuery(key, of)
	if err != nil {
		t.Fatal(err)
	}
	return r.Answer(q)
}

// tail returns the last n points. It replaces unknown points by -1.
func tail(v Values, n int) []float32 {
	out := slices.Clone(v[len(v)-n:])
	for i := range out {
		if isUnknown(out[i]) {
			out[i] = -1
		}
	}
	return out
}

func wantTail(t *testing.T, what string, got Values, want ...float32) {
	t.Helper()
	if len(got) < len(want) || !slices.Equal(tail(got, len(want)), want) {
		t.Errorf("%s: got %v, want the last points %v", what, got, want)
	}
}

// TestHistory records a cluster, a topic, a subscription and a group, over a restart of the recorder.
func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		ctx := context.Background()
		id := w.create("orders")
		if err := w.broker.Consumer.Subscribe(ctx, topicNamed("orders"), "s",
			messaging.Position{Kind: engine.Earliest}, nil); err != nil {
			t.Fatal(err)
		}
		commit := func(offset int64) {
			if err := w.groups.Commit(ctx, groups.Key{Tenant: "public", Group: "g"}, &groups.CommitRequest{
				Generation: -1,
				Offsets:    map[groups.Partition]groups.Offset{groups.PartitionOf(id, 0): {Offset: offset}},
			}); err != nil {
				t.Fatal(err)
			}
		}
		receive := func(n int) {
			got, err := w.broker.Consumer.Receive(ctx, topicNamed("orders"), "s", messaging.ReceiveOptions{Max: n})
			if err != nil || len(got) != n {
				t.Fatalf("got %d messages and error %v, want %d", len(got), err, n)
			}
		}
		cluster, topic := Key{Kind: Cluster, Cluster: "u"}, Key{Kind: Topic, Cluster: "u", Topic: id}
		r := w.recorder()
		stop := run(r)
		w.produce("orders", 1)
		time.Sleep(sampleEvery + time.Second) // the first sample has no rates
		w.produce("orders", 30)
		receive(6)
		commit(10)
		time.Sleep(sampleEvery)
		receive(15)
		time.Sleep(sampleEvery)
		a := answer(t, r, topic, "15m")
		wantTail(t, "in", a.In, -1, 2, 0)
		wantTail(t, "backlog", a.Backlog, 1, 31, 31)
		if !a.Recorded || a.StepSeconds != 15 || len(a.Out) != 60 || a.StoredBytes[59] <= 0 {
			t.Errorf("history of a topic: got %+v", a)
		}
		wantTail(t, "out", a.Out, -1, 0.4, 1)
		subscription, group := topic, Key{Kind: Group, Cluster: "u", Tenant: "public", Name: "g"}
		subscription.Kind, subscription.Name = Subscription, "s"
		a = answer(t, r, subscription, "15m")
		wantTail(t, "out of the subscription", a.Out, -1, -1, 1) // it has a history since it was used
		wantTail(t, "backlog of the subscription", a.Backlog, -1, 31, 31)
		wantTail(t, "errors of the subscription", a.Errors, -1, -1, 0)
		wantTail(t, "in of the cluster", answer(t, r, cluster, "15m").In, -1, 2, 0)
		wantTail(t, "in of the cluster, 1h", answer(t, r, cluster, "1h").In, -1, 1)
		wantTail(t, "backlog of the cluster", answer(t, r, cluster, "").Backlog, -1, 31)

		stop()
		time.Sleep(2*sampleEvery - time.Second) // the server is stopped
		r = w.recorder()
		stop = run(r)
		defer func() { stop() }()
		time.Sleep(sampleEvery + time.Second)
		w.produce("orders", 15)
		commit(25)
		time.Sleep(sampleEvery)
		// Two samples are missing, and the first one after the start has no rate.
		wantTail(t, "in after a restart", answer(t, r, topic, "15m").In, -1, 2, 0, -1, -1, -1, 1)
		wantTail(t, "backlog after a restart", answer(t, r, topic, "15m").Backlog, 31, 31, -1, -1, 31, 46)
		wantTail(t, "backlog of the subscription after a restart", answer(t, r, subscription, "15m").Backlog,
			31, 31, -1, -1, 31, 46)
		wantTail(t, "lag of the group", answer(t, r, group, "15m").Lag, -1, 21, 21)
		wantTail(t, "progress of the group", answer(t, r, group, "15m").Out, -1, -1, 1)

		if err := w.broker.Catalogue.DeleteTopic(ctx, topicNamed("orders"), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * sampleEvery)
		if answer(t, r, topic, "15m").Recorded || answer(t, r, subscription, "15m").Recorded {
			t.Error("topic or subscription has a history after its deletion")
		}
		if w.log.Len() > 0 {
			t.Errorf("log: %s", w.log.String())
		}
	})
}

// TestBounded produces to 5,000 topics: the memory stays within its bound.
func TestBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		for i := range 5000 {
			local := fmt.Sprintf("t%d", i)
			w.create(local)
			w.produce(local, 1)
		}
		r := w.recorder()
		for range 2 {
			r.sampler.sample(context.Background(), time.Now())
			if n := len(r.keys(Topic, "u")); n != maxSeries {
				t.Fatalf("%d topics have a history, want %d", n, maxSeries)
			}
			time.Sleep(sampleEvery)
		}
		// A topic that is much busier than the others replaces one of them.
		w.produce("t4999", 100)
		r.sampler.sample(context.Background(), time.Now())
		id, _ := w.broker.Catalogue.IDOf(context.Background(), topicNamed("t4999"))
		if r.find(Key{Kind: Topic, Cluster: "u", Topic: uint64(id)}) == nil {
			t.Error("the busiest topic has no history")
		}
		for kind := range kinds {
			for i := range 3 * maxSeries {
				key := Key{Kind: kind, Cluster: "u", Topic: uint64(1_000_000 + i), Name: "n"}
				if kind == Cluster {
					key.Cluster = fmt.Sprint(i)
				}
				r.admit(key, 1)
			}
		}
		if n, most := r.Bytes(), 16<<20; n > most || n < most/2 {
			t.Errorf("all series take %d bytes, want at most %d", n, most)
		}
		data, err := r.encode()
		if err != nil || len(data) > 16<<20 {
			t.Errorf("file has %d bytes, want at most 16 MiB; error %v", len(data), err)
		}
	})
}

// TestBusyClusterLeavesRoom checks that a busy cluster does not take the history of the others.
func TestBusyClusterLeavesRoom(t *testing.T) {
	t.Parallel()
	r := New(Options{Path: filepath.Join(t.TempDir(), "h"), Logger: slog.New(slog.DiscardHandler)})
	for i := range 2 * maxSeries {
		r.admit(Key{Kind: Topic, Cluster: "busy", Topic: uint64(i)}, 1000+float64(i))
	}
	for i := range maxSeries {
		r.admit(Key{Kind: Topic, Cluster: "quiet", Topic: uint64(i)}, 0.1)
	}
	busy, quiet := len(r.keys(Topic, "busy")), len(r.keys(Topic, "quiet"))
	if busy+quiet != maxSeries || quiet < maxSeries/2-1 {
		t.Errorf("got %d series of a busy cluster and %d of a quiet one, want about half of %d each", busy, quiet,
			maxSeries)
	}
	if r.admit(Key{Kind: Topic, Cluster: "busy", Topic: 1 << 40}, 1) != nil {
		t.Error("a topic that is less busy than all others replaced one")
	}
}

// TestDamagedFile checks that a file in which anything has changed means an empty history and one line
// in the log.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "history.gz")}
	r := w.recorder()
	key := Key{Kind: Topic, Cluster: "u", Topic: 7}
	at := time.Now()
	s := r.admit(key, 1)
	v := sample{1, 2, 3, 4, 5}
	s.add(Topic, at, &v)
	r.save()
	good, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	if !w.recorder().Answer(&Query{Key: key, Range: "1h", Until: at}).Recorded || w.log.Len() > 0 {
		t.Fatalf("file is not read; log: %s", w.log.String())
	}
	w.full = true
	r.remove(key)
	r.save()
	if !w.recorder().Answer(&Query{Key: key, Range: "1h", Until: at}).Recorded {
		t.Error("file was written while the disk was nearly full")
	}
	w.full = false
	damaged := map[string][]byte{
		"empty": {}, "not gzip": []byte("history"), "cut": good[:len(good)-4], "half": good[:len(good)/2],
	}
	for at := 10; at < len(good); at += 7 { // the bytes before are flags and a time that gzip does not check
		flipped := slices.Clone(good)
		flipped[at] ^= 0xff // of one byte, some bits are only padding
		damaged[fmt.Sprint("byte ", at)] = flipped
	}
	for name, content := range damaged {
		if err := os.WriteFile(w.path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		w.log.Reset()
		r := w.recorder()
		if n, lines := len(r.series), strings.Count(w.log.String(), "\n"); n != 0 || lines != 1 {
			t.Errorf("%s: got %d series and %d lines in the log, want none and one: %s", name, n, lines, w.log.String())
		}
		r.save()
		if w.log.Reset(); len(w.recorder().series) != 0 || w.log.Len() != 0 {
			t.Errorf("%s: file was not replaced by a good one", name)
		}
	}
}

func TestRing(t *testing.T) {
	t.Parallel()
	columns := []int{valueOut, valueBacklog}
	r := ring{Values: make([]float32, 4*len(columns))}
	add := func(number int64, out, backlog float32) {
		v := unknownSample()
		v[valueOut], v[valueBacklog] = out, backlog
		r.add(number, columns, &v)
	}
	add(100, 2, 7)
	add(100, 4, 8)
	add(102, 1, 9)
	add(99, 50, 50) // the clock was set back
	wantTail(t, "mean, gap and next", r.read(102, columns, 0), -1, 3, -1, 1)
	wantTail(t, "last value", r.read(102, columns, 1), -1, 8, -1, 9)
	wantTail(t, "later", r.read(104, columns, 0), -1, 1, -1, -1)
	add(1000, 5, 5)
	wantTail(t, "after a long pause", r.read(1000, columns, 0), -1, -1, -1, 5)
	add(10, 6, 6) // the clock was wrong
	wantTail(t, "after a change of the clock", r.read(10, columns, 0), -1, -1, -1, 6)
}

// TestCounterRestarts checks that a counter that starts again is a gap, not a negative rate.
func TestCounterRestarts(t *testing.T) {
	t.Parallel()
	s, at := newSeries(Topic), time.Unix(1_000_000, 0)
	want := []float32{-1, 2, -1, 1}
	for i, in := range []int64{100, 120, 5, 15} {
		v, _ := s.rates(at.Add(time.Duration(i)*10*time.Second), messaging.Activity{In: in}, true)
		wantTail(t, fmt.Sprint("sample ", i), Values{v[valueIn]}, want[i])
	}
}

// TestAnswers adds the answers of two members.
func TestAnswers(t *testing.T) {
	t.Parallel()
	q, err := NewQuery(Key{Kind: Group, Cluster: "u"}, "")
	if err != nil {
		t.Fatal(err)
	}
	a, b := emptyAnswer(q), emptyAnswer(q)
	copy(a.Lag, []float32{1, unknown, 3, unknown})
	copy(b.Lag, []float32{10, 20, unknown, unknown})
	b.Recorded = true
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"lag":[10,20,null,null,`)) || bytes.Contains(text, []byte("backlog")) {
		t.Errorf("JSON: got %s", text)
	}
	var other Answer
	if err := json.Unmarshal(text, &other); err != nil {
		t.Fatal(err)
	}
	if err := a.Add(Group, &other); err != nil || !a.Recorded || a.Incomplete {
		t.Errorf("sum: got %+v, error %v", a, err)
	}
	wantTail(t, "sum", a.Lag[:4], 11, 20, 3, -1)
	other.Lag = other.Lag[1:]
	if a.Add(Group, &other) == nil {
		t.Error("an answer with another number of points was added")
	}
	if _, err := NewQuery(q.Key, "2h"); err == nil {
		t.Error("range 2h: got no error")
	}
}
