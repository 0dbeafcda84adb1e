package replicated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
	"freshet/test/poll"
)

// TestJudge checks which copies are damaged, given the checksums that members have published.
func TestJudge(t *testing.T) {
	t.Parallel()
	of := &step{ID: "1", Version: contentVersion}
	sum := func(at, content string) contentSum {
		return contentSum{ID: "1", Version: contentVersion, At: at, Sum: content}
	}
	change := func(c contentSum, edit func(*contentSum)) contentSum {
		edit(&c)
		return c
	}
	fetched := func(c *contentSum) { c.Fetched = true }
	three, five := []string{"a", "b", "c"}, []string{"a", "b", "c", "d", "e"}
	type sums = map[string]contentSum
	for _, tc := range []struct {
		name           string
		copies         []string
		sums           sums
		odd, undecided string
		compared       int
	}{
		{"equal", three, sums{"a": sum("p", "x"), "b": sum("p", "x"), "c": sum("p", "x")}, "", "", 3},
		{"one odd", three, sums{"a": sum("p", "x"), "b": sum("p", "y"), "c": sum("p", "x")}, "b", "", 3},
		{"absent", three, sums{"a": sum("p", "x"), "b": sum("p", "y")}, "", "a b", 2},
		{"all differ", three, sums{"a": sum("p", "x"), "b": sum("p", "y"), "c": sum("p", "z")}, "", "a b c", 3},
		{"other position", three, sums{"a": sum("p", "x"), "b": sum("q", "y"), "c": sum("p", "x")}, "", "", 2},
		{"two copies", []string{"a", "b"}, sums{"a": sum("p", "x"), "b": sum("p", "y")}, "", "a b", 2},
		{"no majority of all", five, sums{
			"a": sum("p", "x"), "b": sum("p", "x"), "c": sum("p", "y"),
		}, "", "a b c", 3},
		{"two odd", five, sums{
			"a": sum("p", "x"), "b": sum("p", "y"), "c": sum("p", "x"), "d": sum("p", "z"), "e": sum("p", "x"),
		}, "b d", "", 5},
		{"no copy any more", three, sums{"a": sum("p", "x"), "b": sum("p", "x"), "d": sum("p", "y")}, "", "", 2},
		{"fetched from the wrong one", three, sums{
			"a": sum("p", "x"), "b": sum("p", "y"), "c": change(sum("p", "y"), fetched),
		}, "", "a b c", 3},
		{"fetched and odd", three, sums{
			"a": sum("p", "x"), "b": change(sum("p", "y"), fetched), "c": sum("p", "x"),
		}, "b", "", 3},
		{"other range", three, sums{
			"a": sum("p", "x"), "c": sum("p", "x"),
			"b": change(sum("p", "x"), func(c *contentSum) { c.Last = []byte("k") }),
		}, "b", "", 3},
		{"other step, other version, no checksum", three, sums{
			"a": change(sum("p", "x"), func(c *contentSum) { c.ID = "0" }),
			"b": change(sum("p", "y"), func(c *contentSum) { c.Version++ }), "c": sum("p", ""),
		}, "", "", 0},
	} {
		v := judge(of, tc.sums, tc.copies)
		if got := strings.Join(v.odd, " "); got != tc.odd {
			t.Errorf("%s: got odd copies %q, want %q", tc.name, got, tc.odd)
		}
		if got := strings.Join(v.undecided, " "); got != tc.undecided {
			t.Errorf("%s: got undecided copies %q, want %q", tc.name, got, tc.undecided)
		}
		if len(v.compared) != tc.compared {
			t.Errorf("%s: got %d compared copies, want %d", tc.name, len(v.compared), tc.compared)
		}
	}
}

// often makes a member compare its copies all the time.
func often(o *Options) { o.VerifyInterval = 200 * time.Millisecond }

// eventuallyCompared waits until comparisons have made a condition true. A step can take a quarter of a minute.
func eventuallyCompared(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll.Until(t, 5*time.Minute, what, holds)
}

// compareTrio starts three members with copies that were compared.
func compareTrio(t *testing.T) (k *keepers, a, b, c *member, texts []string) {
	t.Helper()
	k = newKeepers(t)
	a = k.run(t, "a", often)
	texts = fillDense(t, a.awaitOwner(t))
	b, c = k.run(t, "b", often), k.run(t, "c", often)
	for _, m := range []*member{b, c} {
		m.awaitSound(t, a.Status().Applied)
	}
	awaitPurged(t, a)
	awaitCompared(t, a, b, c)
	return k, a, b, c, texts
}

// awaitCompared waits until all copies have been compared and no copy counts as fetched.
func awaitCompared(t *testing.T, members ...*member) {
	t.Helper()
	eventuallyCompared(t, "copies compared", func() bool {
		return !slices.ContainsFunc(members, func(m *member) bool {
			return m.fetched() || m.o.Integrity.Part(m.part()).Compared.IsZero()
		})
	})
}

// tamper changes a message in the store of a stopped member, such that all its files are intact.
func tamper(t *testing.T, m *member, how string) {
	t.Helper()
	db, err := cdb.Open(m.o.Dir, &cdb.Options{FormatMajorVersion: cdb.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	iter, err := db.NewIter(&cdb.IterOptions{LowerBound: []byte("m"), UpperBound: []byte("n")})
	if err != nil {
		t.Fatal(err)
	}
	var keys, values [][]byte
	for ok := iter.First(); ok; ok = iter.Next() {
		keys, values = append(keys, slices.Clone(iter.Key())), append(values, slices.Clone(iter.Value()))
	}
	if err := iter.Close(); err != nil {
		t.Fatal(err)
	}
	if how == "lost" {
		err = db.Delete(keys[len(keys)/2], nil)
	} else {
		err = db.Set(keys[len(keys)/2], values[len(keys)/2-1], nil)
	}
	if err = errors.Join(err, db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	asKilled(t, m.o.Dir)
}

// awaitHealed waits until a member has replaced its copy because its content was wrong.
func (m *member) awaitHealed(t *testing.T) {
	t.Helper()
	eventuallyCompared(t, "the copy of member "+m.name+" healed", func() bool {
		part := m.o.Integrity.Part(m.part())
		return !part.Healed.IsZero() && part.Damaged.IsZero()
	})
	part := m.o.Integrity.Part(m.part())
	if part.Damages != 1 || !strings.Contains(part.Problem, "content differs") {
		t.Errorf("got %+v, want one wrong content", part)
	}
	m.wantHealed(t, 1)
}

// TestCompareStandby changes the content of a standby in ways that no checksum of a file shows. The copy is
// replaced, and has every message.
func TestCompareStandby(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"lost", "changed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			k, a, b, c, texts := compareTrio(t)
			k.halt(t, b)
			tamper(t, b, how)
			b = k.run(t, "b", often)
			b.awaitHealed(t)
			b.awaitSound(t, a.Status().Applied)
			for _, m := range []*member{a, c} {
				if part := m.o.Integrity.Part(m.part()); part.Damages != 0 || part.Differs != "" {
					t.Errorf("got %+v on member %s, want no damage", part, m.name)
				}
			}
			awaitCompared(t, a, b, c)
			k.halt(t, a)
			k.halt(t, c)
			wantTexts(t, b.awaitOwner(t), texts...)
			k.halt(t, b)
		})
	}
}

// TestCompareOwner changes the content of the owner. It gives up the shard and replaces its copy.
func TestCompareOwner(t *testing.T) {
	t.Parallel()
	k, a, b, c, texts := compareTrio(t)
	k.halt(t, c)
	k.halt(t, b)
	k.halt(t, a)
	tamper(t, a, "lost")
	a = k.run(t, "a", often)
	a.awaitOwner(t)
	epoch := a.epoch()
	b, c = k.run(t, "b", often), k.run(t, "c", often)
	a.awaitHealed(t)
	if got := awaitOwnerAfter(t, epoch, a, b, c); got == nil {
		t.Fatal("got no later owner, want one")
	}
	wantTexts(t, awaitOneOwner(t, a, b, c), texts...)
	a.awaitSound(t, b.Status().Applied)
	k.halt(t, b)
	k.halt(t, c)
	wantTexts(t, a.awaitOwner(t), texts...)
	k.halt(t, a)
}

// awaitOwnerAfter waits until a member owns the shard with a later epoch.
func awaitOwnerAfter(t *testing.T, epoch uint64, members ...*member) (owner *member) {
	t.Helper()
	eventuallyCompared(t, "a later owner", func() bool {
		for _, m := range members {
			if m.epoch() > epoch {
				owner = m
				return true
			}
		}
		return false
	})
	return owner
}

// TestCompareUndecided changes the content of one of two live copies. Both are kept and reported. When the
// third copy is back, it decides.
func TestCompareUndecided(t *testing.T) {
	t.Parallel()
	k, a, b, c, texts := compareTrio(t)
	k.halt(t, c)
	k.halt(t, b)
	tamper(t, b, "lost")
	b = k.run(t, "b", often)
	for _, m := range []*member{a, b} {
		eventuallyCompared(t, "the difference reported by member "+m.name, func() bool {
			return strings.Contains(m.o.Integrity.Part(m.part()).Differs, "no majority")
		})
		if part := m.o.Integrity.Part(m.part()); part.Damages != 0 || len(m.o.Integrity.Quarantined()) != 0 {
			t.Errorf("got %+v on member %s, want no damage", part, m.name)
		}
	}
	wantTexts(t, a.awaitOwner(t), texts...)
	c = k.run(t, "c", often)
	b.awaitHealed(t)
	for _, m := range []*member{a, b, c} {
		eventuallyCompared(t, "no difference on member "+m.name, func() bool {
			return m.o.Integrity.Part(m.part()).Differs == ""
		})
	}
	k.halt(t, a)
	k.halt(t, c)
	wantTexts(t, b.awaitOwner(t), texts...)
	k.halt(t, b)
}

// TestCompareUnderLoad compares copies all the time while topics are created, written, consumed and deleted,
// and the owner changes. They never differ.
func TestCompareUnderLoad(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	slow := func(o *Options) { o.VerifyBytes = backgroundShare * (30 << 10) } // several steps
	var members []*member
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, k.run(t, name, often, slow))
	}
	compared := 0
	seen := make(map[string]time.Time)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for i := range 4 {
		load.Go(func() { churn(t, members, engine.TopicID(100*(i+1)), stop) })
	}
	begin, lasts := time.Now(), loadTime(t)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for at := 0; time.Since(begin) < lasts || compared < 9; at++ {
		for _, m := range members {
			part := m.o.Integrity.Part(m.part())
			if part.Damages != 0 || part.Differs != "" {
				t.Fatalf("got %+v on member %s, want equal copies", part, m.name)
			}
			if part.Compared.After(seen[m.name]) {
				seen[m.name] = part.Compared
				compared++
			}
		}
		if at%400 == 399 {
			for _, m := range members {
				if m.epoch() != 0 {
					m.postponeCampaign(time.Second)
					m.requestHandOver()
				}
			}
		}
		if time.Since(begin) > lasts+5*time.Minute {
			t.Fatalf("got %d comparisons, want at least 9", compared)
		}
		<-tick.C
	}
	close(stop)
	load.Wait()
	t.Logf("%d comparisons", compared)
	for _, m := range members {
		k.halt(t, m)
	}
}

// loadTime returns how long TestCompareUnderLoad lasts at least. FRESHET_COMPARE_TIME makes it longer.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FRESHET_COMPARE_TIME")
	if text == "" {
		return 0
	}
	lasts, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return lasts
}

// churn writes to topics, consumes them and deletes them until stop is closed. Calls fail while the owner
// changes.
func churn(t *testing.T, members []*member, id engine.TopicID, stop <-chan struct{}) {
	ctx, random := t.Context(), rand.New(rand.NewPCG(uint64(id), 1))
	first := id
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.IntN(4)) * time.Millisecond): // so that the content stays small
		}
		var e engine.Engine
		for _, m := range members {
			if owned, err := m.Engine(); err == nil {
				e = owned
			}
		}
		if e == nil {
			continue
		}
		switch random.IntN(20) {
		case 0:
			id++
			_ = e.CreateTopic(ctx, id, engine.TopicConfig{
				Partitions: 2, RetainAge: time.Duration(random.IntN(2)) * time.Second, RetainBytes: 10_000,
			})
			_ = e.CreateSubscription(ctx, id, "s", engine.SubscriptionConfig{}, engine.Position{Kind: engine.Earliest})
		case 1:
			for old := range max(id, first+3) - first - 3 {
				_ = e.DeleteTopic(ctx, first+old)
			}
		case 2, 3, 4, 5:
			got, _ := e.Receive(ctx, id, "s", engine.ReceiveRequest{
				Max: 20, Lease: time.Minute, Partition: engine.AllPartitions,
			})
			var settled []engine.Settlement
			for _, d := range got {
				settled = append(settled, engine.Settlement{ID: d.ID, Action: engine.Ack})
			}
			_ = e.Settle(ctx, id, "s", settled)
		case 6:
			if j, err := e.Journal(ctx, fmt.Sprint("j", first)); err == nil {
				last, _ := j.Last(ctx)
				_, _ = j.Append(ctx, last, []byte("record"))
			}
		default:
			_, _ = e.Append(ctx, id, int32(random.IntN(2)), []engine.Message{
				{Payload: []byte(strings.Repeat("x", random.IntN(2000)))},
			})
		}
	}
}
