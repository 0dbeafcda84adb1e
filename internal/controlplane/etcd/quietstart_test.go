package etcd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/ops/telemetry"
)

// TestQuietStart checks that a member logs no warning when it starts with a store that has many changes.
// Until the first change is applied, etcd takes the number of applied changes for 0, and rejects its own
// request to publish the member, again and again.
func TestQuietStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	with(t, dir, func(m *etcd.Member) {
		client := clientOf(t, m)
		var writers errgroup.Group
		for writer := range 20 {
			writers.Go(func() error {
				for range 300 { // 6,000 changes in all, more than the 5,000 that etcd lets wait
					if _, err := client.Put(t.Context(), fmt.Sprint(writer), "thaw"); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := writers.Wait(); err != nil {
			t.Fatal(err)
		}
	})
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})) // serializes its writes
	m, err := etcd.Start(t.Context(), dir, etcd.Options{Logger: telemetry.ZapLogger(telemetry.Library(log, "etcd"))})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n > 0 {
		first, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
		t.Errorf("got %d warnings, want none; the first is %s", n, first)
	}
}
