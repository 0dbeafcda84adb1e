package pebble

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"freshet/internal/storage/engine"
)

const copiedTopics = 7

// copied creates a store with topics, subscriptions with some acknowledgements, and journals,
// and closes it.
func copied(t *testing.T) string {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	e, err := Open(dir, Options{EraBytes: 4 << 10, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for id := engine.TopicID(1); id <= copiedTopics; id++ {
		must(t, e.CreateTopic(ctx, id,
			engine.TopicConfig{Partitions: 2, RetainAge: -1, RetainBytes: -1, Deduplicate: true}))
		must(t, e.CreateSubscription(ctx, id, "sub", engine.SubscriptionConfig{},
			engine.Position{Kind: engine.Earliest}))
		for i := range 40 {
			_, err := e.Append(ctx, id, int32(i%2),
				[]engine.Message{{
					Payload: fmt.Appendf(nil, "%d/%d/%s", id, i, strings.Repeat("x", 300)), Producer: "p",
					Sequence: uint64(i), HasSequence: true,
				}})
			must(t, err)
		}
		got, err := e.Receive(ctx, id, "sub", engine.ReceiveRequest{Max: 20})
		must(t, err)
		var settle []engine.Settlement
		for i, d := range got {
			if i%3 != 0 { // some above the floor
				settle = append(settle, engine.Settlement{ID: d.ID, Action: engine.Ack})
			}
		}
		must(t, e.Settle(ctx, id, "sub", settle))
	}
	for i, name := range []string{"messaging", "schemas", "groups-00", "groups-01", "groups-05"} {
		j, err := e.Journal(ctx, name)
		must(t, err)
		for n := range uint64(50) {
			_, err := j.Append(ctx, n, fmt.Appendf(nil, "%s %d", name, n))
			must(t, err)
		}
		if i%2 == 0 {
			must(t, j.SaveSnapshot(ctx, 30,
				func(w io.Writer) error { _, err := io.WriteString(w, "state of "+name); return err }))
		}
	}
	must(t, e.Close())
	return dir
}

// must ends the test when one of the errors is not nil.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns checksums of the files of a store, except its lock file.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if e.Name() == "LOCK" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		sums[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return sums
}

func survey(t *testing.T, dir string) *Survey {
	t.Helper()
	s, err := TakeSurvey(t.Context(), dir, func(int64, int64) {})
	if err != nil {
		t.Fatalf("survey of %s: got error %v, want none", dir, err)
	}
	return s
}

// copyTargets returns the targets for three shards and for the journals that all members share.
func copyTargets(dir string) []CopyTarget {
	var list []CopyTarget
	for i := range 3 {
		list = append(list, CopyTarget{
			Dir: filepath.Join(dir, fmt.Sprint(i)), LogPosition: []byte("mark"),
			Topic: func(id engine.TopicID) bool { return int(id)%3 == i },
			Journal: func(name string) bool {
				var n int
				_, err := fmt.Sscanf(name, "groups-%02d", &n)
				return err == nil && n%3 == i
			},
		})
	}
	return append(list, CopyTarget{
		Dir: filepath.Join(dir, "journals"), Topic: func(engine.TopicID) bool { return false },
		Journal: func(name string) bool { return !strings.HasPrefix(name, "groups-") },
	})
}

// cutCheckpoint saves one key and then interrupts the copy.
type cutCheckpoint struct {
	after []byte
	saved bool
}

var errCut = errors.New("cut")

func (c *cutCheckpoint) After() []byte { return c.after }

func (c *cutCheckpoint) Save(after []byte) error {
	if c.saved {
		return errCut
	}
	c.after, c.saved = after, true
	return nil
}

// TestCopy splits a store into parts, with a copy that is interrupted repeatedly, and merges
// the parts again. Each part has its topics and journals unchanged, subscriptions keep their
// positions, and the original store is not changed.
func TestCopy(t *testing.T) {
	t.Parallel()
	from, to := copied(t), t.TempDir()
	want, files := survey(t, from), filesOf(t, from)
	cut := &cutCheckpoint{}
	cuts := 0
	for {
		err := Copy(t.Context(), CopyOptions{
			From: []string{from}, To: copyTargets(to), Progress: func(int64, int64) {}, flushEvery: 9 << 10,
			Checkpoint: cut,
		})
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		cut.saved = false
		cuts++
	}
	if cuts < 3 {
		t.Errorf("interruptions of the copy: got %d, want at least 3", cuts)
	}
	if !maps.Equal(files, filesOf(t, from)) {
		t.Error("files of the original store: got changes, want none")
	}
	var dirs []string
	topics, journals := map[engine.TopicID]TopicSurvey{}, map[string]JournalSurvey{}
	for i, part := range copyTargets(to) {
		dirs = append(dirs, part.Dir)
		got := survey(t, part.Dir)
		if string(got.LogPosition) != string(part.LogPosition) {
			t.Errorf("part %d: got log position %q, want %q", i, got.LogPosition, part.LogPosition)
		}
		for id, s := range got.Topics {
			if !part.Topic(id) {
				t.Errorf("part %d: got topic %d, want only its own topics", i, id)
			}
			topics[id] = s
		}
		for name, s := range got.Journals {
			if !part.Journal(name) {
				t.Errorf("part %d: got journal %s, want only its own journals", i, name)
			}
			journals[name] = s
		}
	}
	if !maps.Equal(topics, want.Topics) || len(topics) != copiedTopics {
		t.Errorf("topics of the parts: got %+v, want %+v", topics, want.Topics)
	}
	if !maps.Equal(journals, want.Journals) || len(journals) != 5 {
		t.Errorf("journals of the parts: got %+v, want %+v", journals, want.Journals)
	}
	one := want.Topics[1]
	if one.Messages != 40 || one.Subscriptions != 1 || one.Last.Partition != 1 || one.Last.Entry-one.First.Entry != 19 {
		t.Errorf("survey of a topic: got %+v, want 40 messages from first to last", one)
	}

	united := filepath.Join(t.TempDir(), "store")
	every := CopyTarget{
		Dir: united, Topic: func(engine.TopicID) bool { return true },
		Journal: func(string) bool { return true },
	}
	must(t, Copy(t.Context(), CopyOptions{
		From: dirs, To: []CopyTarget{every}, Progress: func(int64, int64) {},
	}))
	got := survey(t, united)
	if !maps.Equal(got.Topics, want.Topics) || !maps.Equal(got.Journals, want.Journals) || got.LogPosition != nil {
		t.Errorf("united store: got %+v, want %+v", got, want)
	}
	if a, b := contents(t, united), contents(t, from); !slices.Equal(a, b) {
		t.Errorf("contents of the united store: got %v, want %v", a, b)
	}
}

// contents returns the next deliveries, the results of duplicate appends, and the journals.
func contents(t *testing.T, dir string) []string {
	t.Helper()
	ctx := context.Background()
	e, err := Open(dir, Options{})
	must(t, err)
	defer func() { must(t, e.Close()) }()
	var all []string
	for id := engine.TopicID(1); id <= copiedTopics; id++ {
		got, err := e.Receive(ctx, id, "sub", engine.ReceiveRequest{Max: 100})
		must(t, err)
		for _, d := range got {
			all = append(all, fmt.Sprintf("%v %s", d.ID, d.Payload))
		}
		again, err := e.Append(ctx, id, 0,
			[]engine.Message{{
				Payload: []byte("again"), Producer: "p", Sequence: 4, HasSequence: true,
				Dedup: engine.DedupKey{Producer: "p", Sequence: 4},
			}})
		must(t, err)
		all = append(all, fmt.Sprint(again))
	}
	for _, name := range []string{"messaging", "schemas", "groups-00", "groups-01", "groups-05"} {
		j, err := e.Journal(ctx, name)
		must(t, err)
		position, state, err := j.LoadSnapshot(ctx)
		must(t, err)
		if state != nil {
			text, err := io.ReadAll(state)
			must(t, err)
			must(t, state.Close())
			all = append(all, fmt.Sprintf("%s snapshot %d %s", name, position, text))
		}
		_, err = j.Replay(ctx, position, func(n uint64, record []byte) error {
			all = append(all, fmt.Sprintf("%d %s", n, record))
			return nil
		})
		must(t, err)
	}
	return all
}
