package replicated

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/test/tally"
)

// disturb stops and starts servers of the log except the first, and moves the leader of a
// stream, until the context ends. It returns the number of stops and moves.
func disturb(ctx context.Context, t testing.TB, c *natstest.Cluster, stream string, rng *rand.Rand) (stops, moves int) {
	conn := c.Connect(0)
	for ctx.Err() == nil {
		if rng.IntN(2) == 0 {
			try, cancel := context.WithTimeout(ctx, time.Second)
			if c.StepDown(try, conn, stream) == nil {
				moves++
			}
			cancel()
		} else {
			i := 1 + rng.IntN(c.Size()-1)
			c.Stop(i)
			wait(ctx, time.Duration(100+rng.IntN(400))*time.Millisecond)
			c.Start(i)
			stops++
			c.Ready()
		}
		wait(ctx, time.Duration(200+rng.IntN(400))*time.Millisecond)
	}
	return stops, moves
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// TestFaultRivals lets two writers believe alternately and repeatedly that they own the log,
// while servers of the log stop and leaders move. Acknowledged messages stay at their
// sequences, and the log contains no others that count.
func TestFaultRivals(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 3)
	tm := g.team()
	m := tm.start(t, "a", 0, vfs.NewCrashableMem())
	m.awaitOwner(t)
	o := m.o
	m.stop(t)
	long := 6 * time.Second
	if tally.Long() {
		long = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	seed := historySeed(t)
	t.Logf("seed %d", seed)
	var stops, moves int
	var acked [2]map[uint64]string
	var terms, refused atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() { stops, moves = disturb(ctx, t, g.nats, streamName(&o), rand.New(rand.NewPCG(seed, 9))) })
	for n := range acked {
		acked[n] = make(map[uint64]string)
		js, err := jetstream.New(g.nats.Connect(0))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			r := &rival{
				st: rivalStream(t, js, &o), name: fmt.Sprint("rival-", n), acked: acked[n],
				rng: rand.New(rand.NewPCG(seed, uint64(n))),
			}
			for ctx.Err() == nil {
				if err := r.term(ctx); err != nil {
					refused.Add(1)
				}
				terms.Add(1)
			}
		})
	}
	wg.Wait()
	js, err := jetstream.New(g.nats.Connect(0))
	if err != nil {
		t.Fatal(err)
	}
	log, wrong := readLog(t, rivalStream(t, js, &o))
	checked, lost := 0, 0
	for _, mine := range acked {
		for seq, text := range mine {
			checked++
			if log[seq] != text {
				lost++
				t.Errorf("message %d: got %q, want %q, which was acknowledged", seq, log[seq], text)
			}
		}
	}
	t.Logf("%d terms, %d ended by the other writer, %d acknowledged, %d servers stopped, %d leaders moved, "+
		"%d messages in the log", terms.Load(), refused.Load(), checked, stops, moves, len(log))
	tally.Fault{
		Name:     "rivals on one log, servers stopped and leaders moved",
		Injected: stops + moves + int(refused.Load()), Checked: checked, Lost: lost, Wrong: wrong,
	}.Record(t)
}

func rivalStream(t testing.TB, js jetstream.JetStream, o *Options) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	st := &stream{js: js, name: streamName(o), subject: "S." + o.Cluster + ".0"}
	var err error
	for st.handle == nil && ctx.Err() == nil {
		try, tried := context.WithTimeout(ctx, callTimeout) // a response may be lost
		if st.handle, err = js.Stream(try, st.name); err != nil {
			st.handle = nil
			wait(ctx, 100*time.Millisecond)
		}
		tried()
	}
	if st.handle == nil {
		t.Fatalf("open the stream: got error %v, want none", err)
	}
	if st.id, err = parseLogID(st.handle.CachedInfo().Config.Metadata[metaLog]); err != nil {
		t.Fatal(err)
	}
	return st
}

// rival writes to the log as if it were the owner.
type rival struct {
	st    *stream
	name  string
	acked map[uint64]string
	rng   *rand.Rand
	terms int
	seen  uint64      // last message of the log that was read
	at    logPosition // of the last message that counts
}

// term takes over the log and appends until its time is up or the other writer has taken
// over.
func (r *rival) term(ctx context.Context) error {
	state, err := r.st.state(ctx)
	if err != nil {
		wait(ctx, 50*time.Millisecond)
		return nil
	}
	for r.seen < state.LastSeq {
		next, err := r.st.read(ctx, nil, r.seen+1)
		if err != nil {
			return nil
		}
		r.seen++
		if next.continues(r.at) {
			r.at = logPosition{log: r.st.id, epoch: next.epoch, index: next.index, sum: next.sum}
		}
	}
	r.terms++
	at := r.at
	at.seq = r.seen
	w, err := newWriter(r.st, at, fmt.Sprint(r.name, "/", r.terms), func() bool { return true }, 1<<40, nil, nil)
	if err != nil {
		return nil
	}
	defer w.close(errors.New("time of the rival is up"))
	if _, err := w.begin(); err != nil {
		return err
	}
	type promise struct {
		*pendingAppend
		text string
	}
	var open []promise
	until := time.Now().Add(time.Duration(r.rng.IntN(300)) * time.Millisecond)
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
		text := fmt.Sprintf("%s/%d/%d", r.name, r.terms, n)
		open = append(open, promise{w.Append([]byte(text)).(*pendingAppend), text})
		if len(open) < 16 {
			continue
		}
		after, err := open[0].wait()
		if err != nil {
			return err
		}
		r.acked[after.seq] = open[0].text
		open = open[1:]
	}
	for _, p := range open {
		after, err := p.wait()
		if err != nil {
			return err
		}
		r.acked[after.seq] = p.text
	}
	return nil
}

// readLog reads the whole log and checks that each message continues it.
func readLog(t testing.TB, st *stream) (log map[uint64]string, wrong int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	state, err := st.state(ctx)
	for err != nil && ctx.Err() == nil {
		wait(ctx, 100*time.Millisecond)
		state, err = st.state(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	void := 0
	log = make(map[uint64]string)
	texts := make(map[string]bool)
	var at logPosition
	consumer, err := st.handle.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	for seq := uint64(1); seq <= state.LastSeq; seq++ {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			t.Fatalf("message %d: got error %v, want none", seq, err)
		}
		meta, err := msg.Metadata()
		if err != nil || meta.Sequence.Stream != seq {
			t.Fatalf("got %+v, error %v; want message %d", meta, err, seq)
		}
		r, err := parseRecord(seq, msg.Headers(), msg.Data())
		if err != nil {
			t.Fatalf("message %d: got error %v, want none", seq, err)
		}
		if !r.continues(at) {
			void++
			continue
		}
		text := string(r.data)
		if r.sumAfter(at.sum) != r.sum || text != "" && texts[text] {
			wrong++
			t.Errorf("message %d: got %q of epoch %d after epoch %d, want it to continue the log, once", seq, text,
				r.epoch, at.epoch)
		}
		at = logPosition{epoch: r.epoch, index: r.index, sum: r.sum}
		texts[text], log[seq] = true, text
	}
	t.Logf("%d of %d messages are void", void, state.LastSeq)
	return log, wrong
}

// TestFaultLogServers stops servers of the log and moves its leader while an owner is under
// load. Producers get no error, because the owner learns the outcome of each append, and
// every message is stored once.
func TestFaultLogServers(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 3)
	tm := g.team()
	m := tm.start(t, "a", 0, vfs.NewCrashableMem())
	e := m.awaitOwner(t)
	ctx := context.Background()
	if err := e.CreateTopic(ctx, 1, retainAll); err != nil {
		t.Fatal(err)
	}
	long := 6 * time.Second
	if tally.Long() {
		long = time.Minute
	}
	busy, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	seed := historySeed(t)
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	acked, failed := map[uint64]string{}, 0
	var slowest time.Duration
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for n := 0; busy.Err() == nil; n++ {
				text, begin := fmt.Sprintf("%d/%d", p, n), time.Now()
				e, err := m.Engine()
				var out []engine.Appended
				if err == nil {
					out, err = e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte(text)}})
				}
				mu.Lock()
				slowest = max(slowest, time.Since(begin))
				if err == nil {
					acked[out[0].ID.Entry] = text
				} else {
					failed++
				}
				mu.Unlock()
				if err != nil {
					if !errors.Is(err, engine.ErrNotOwner) && !errors.Is(err, engine.ErrNoOwner) {
						t.Errorf("append: got error %v, want none or a retryable one", err)
					}
					wait(busy, 50*time.Millisecond)
				}
			}
		})
	}
	stops, moves := disturb(busy, t, g.nats, streamName(&m.o), rand.New(rand.NewPCG(seed, 9)))
	wg.Wait()
	e = m.awaitOwner(t)
	lost, wrong := 0, 0
	seen := map[string]int{}
	for from := uint64(0); ; {
		records, err := e.Read(ctx, 1, engine.ReadRequest{From: from, Max: 10000})
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			seen[string(r.Payload)]++
			if text, ok := acked[r.ID.Entry]; ok && text != string(r.Payload) {
				wrong++
			}
			from = r.ID.Entry + 1
		}
	}
	for _, text := range acked {
		switch seen[text] {
		case 0:
			lost++
		case 1:
		default:
			wrong++
		}
	}
	t.Logf("%d servers stopped, %d leaders moved, %d appends acknowledged, %d failed, slowest %s", stops, moves,
		len(acked), failed, slowest)
	tally.Fault{
		Name: "servers of a shard's log stopped and its leader moved", Injected: stops + moves,
		Checked: len(acked), Lost: lost, Wrong: wrong, Recovery: slowest,
	}.Record(t)
	m.stop(t)
}
