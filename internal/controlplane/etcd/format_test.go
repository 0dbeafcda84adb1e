package etcd_test

import (
	"errors"
	"log/slog"
	"testing"

	"freshet/internal/base/version"
	"freshet/internal/controlplane/etcd"
)

func TestFormatInEtcd(t *testing.T) {
	t.Parallel()
	member, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = member.Close() }() // its data is not needed any more
	client, err := member.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	log := slog.New(slog.DiscardHandler)
	for range 2 {
		if err := etcd.OpenFormat(t.Context(), client, "/x", log); err != nil {
			t.Fatalf("own format: got %v, want nil", err)
		}
	}
	for value, newer := range map[string]bool{"2": true, "damage": false} {
		if _, err := client.Put(t.Context(), "/x/format", value); err != nil {
			t.Fatal(err)
		}
		if err := etcd.OpenFormat(t.Context(), client, "/x", log); err == nil ||
			errors.Is(err, version.ErrNewer) != newer {
			t.Errorf("format %q: got %v, want an error", value, err)
		}
	}
}
