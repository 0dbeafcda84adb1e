package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/controlplane/etcd"
)

func TestFormatsOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file  string // "" for none
		want  string // in the error
		newer bool
	}{
		"none":           {},
		"the current":    {file: "freshet data directory\ndirectory 1\nkeys 1\naudit 1\n"},
		"an earlier one": {file: "freshet data directory\ndirectory 1\n"},
		"a newer one": {
			file: "freshet data directory\ndirectory 1\nkeys 2\naudit 1\n",
			want: "keys has format 2, but this version reads formats up to 1", newer: true,
		},
		"something new": {file: "freshet data directory\nmaps 1\n", want: "maps has format 1", newer: true},
		"damaged":       {file: "freshet dat", want: "is damaged"},
		"not a number":  {file: "freshet data directory\nkeys one\n", want: "is damaged"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, formatFile)
			if tc.file != "" {
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := openFormats(dir, slog.New(slog.DiscardHandler))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) ||
				errors.Is(err, errNewerDirectory) != tc.newer {
				t.Errorf("got %v, want %q, newer %v", err, tc.want, tc.newer)
			}
			text, readErr := os.ReadFile(path)
			if err != nil && string(text) != tc.file {
				t.Errorf("FORMAT of a rejected directory: got %q, want it unchanged", text)
			}
			if err == nil && (readErr != nil ||
				string(text) != "freshet data directory\ndirectory 1\nkeys 1\naudit 1\n") {
				t.Errorf("FORMAT: got %q, %v; want the current formats", text, readErr)
			}
		})
	}
}

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
		if err := openEtcdFormat(t.Context(), client, "/x", log); err != nil {
			t.Fatalf("own format: got %v, want nil", err)
		}
	}
	for value, newer := range map[string]bool{"2": true, "damage": false} {
		if _, err := client.Put(t.Context(), "/x/format", value); err != nil {
			t.Fatal(err)
		}
		if err := openEtcdFormat(t.Context(), client, "/x", log); err == nil ||
			errors.Is(err, errNewerDirectory) != newer {
			t.Errorf("format %q: got %v, want an error", value, err)
		}
	}
}

// TestDiskReserve checks the size of the reserve file while the server runs, and after it has
// stopped. test/e2e/faults tests a full disk.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := func(when string, want int64) {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, reserveFile))
		if err != nil || info.Size() != want {
			t.Errorf("%s: got %v, %v, want a file of %d bytes", when, info, err, want)
		}
	}
	for range 2 {
		r := openDiskReserve(dir)
		if err := r.maintain(); err != nil {
			t.Fatal(err)
		}
		size("running", r.size)
		if !r.hasSpace() {
			t.Error("has = false, want true")
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		size("stopped", r.size+etcd.Segment)
	}
	// Without own, the directory may belong to another process and is not changed.
	other := openDiskReserve(dir)
	if err := other.close(); err != nil {
		t.Fatal(err)
	}
	size("not owned", other.size+etcd.Segment)
}
