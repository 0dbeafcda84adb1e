package ensemble_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"freshet/internal/base/errs"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/ensemble"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/storage/journalcopy"
	"freshet/internal/storage/pebble"
)

// seededStore creates the journals in a member's store, and returns their checksums.
func seededStore(t *testing.T, dir string, names []string) map[string][32]byte {
	t.Helper()
	ctx, sums := t.Context(), map[string][32]byte{}
	store, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		j, err := store.Journal(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		var records [][]byte
		for i := range 3000 {
			records = append(records, fmt.Appendf(nil, "%s %d %s", name, i, strings.Repeat("x", 1000)))
		}
		if _, err := j.Append(ctx, 0, records...); err != nil {
			t.Fatal(err)
		}
		err = j.SaveSnapshot(ctx, 100,
			func(w io.Writer) error { _, err := io.WriteString(w, "state of "+name); return err })
		if err != nil {
			t.Fatal(err)
		}
		if sums[name], err = journalcopy.Sum(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return sums
}

// TestJournalsAreImported makes one member import the journals of a cluster, with repeated
// interruptions: other members do not open them before the import, and get them complete
// afterwards.
func TestJournalsAreImported(t *testing.T) {
	t.Parallel()
	const uid, prefix = "11111111-2222-3333-4444-555555555555", "/freshet"
	member, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Close() })
	client, err := member.Endpoints().Client(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	servers, dir, names := natstest.New(t, 1, natstest.Unsafe), t.TempDir(), []string{"messaging", "schemas"}
	folder := filepath.Join(dir, "a", uid, dataplane.JournalsDir)
	want := seededStore(t, folder, names)
	keys, err := ensemble.SeedKeys(prefix, uid,
		ensemble.Seed{
			Shards: []replicated.Seed{replicated.NewSeed()}, Members: []string{"a"}, Member: "a",
			Journals: names,
		})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range keys {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	open := func(name string) *ensemble.Ensemble {
		g, err := ensemble.New(ensemble.Options{
			Self: name, Members: []string{"a"}, Etcd: client, Prefix: prefix, Log: servers.Connect(0),
			Clusters: filepath.Join(dir, name), Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	a, b := open("a"), open("b")
	cuts := 0
	for limit := 10 * time.Millisecond; ; limit += 10 * time.Millisecond {
		waits, err := client.Get(t.Context(), prefix+"/shards/"+uid+"/journals")
		if err != nil {
			t.Fatal(err)
		}
		if len(waits.Kvs) == 0 { // imported, but interrupted before the response
			limit = time.Minute
		} else if _, err := b.Journals(t.Context(), uid); errs.KindOf(err) != errs.Unavailable ||
			!strings.Contains(err.Error(), `member "a"`) {
			t.Fatalf("journals that are not imported yet: got %v, want kind unavailable", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		journals, err := a.Journals(ctx, uid)
		cancel()
		if err == nil {
			journals.Close()
			break
		}
		cuts++
	}
	if cuts == 0 {
		t.Error("no import was interrupted")
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the store of the journals: got %v, want it removed", err)
	}
	journals, err := b.Journals(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	defer journals.Close()
	for name, sum := range want {
		j, err := journals.Journal(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := journalcopy.Sum(t.Context(), j); err != nil || got != sum {
			t.Errorf("%s: got %x, %v, want %x", name, got, err, sum)
		}
	}
}
