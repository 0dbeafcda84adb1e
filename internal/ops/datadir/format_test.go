package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/base/version"
)

const currentFormats = "freshet data directory\ndirectory 1\nkeys 1\naudit 1\ndirectory 1\nkeys 1\naudit 1\n"

// TestDamagedFormats flips every bit of the file, of this version and of the first one, and cuts it at
// every length. The result must never be taken for a newer version, and an error names the file and
// the command. A cut file that has lost only repetitions is read.
func TestDamagedFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FormatFile)
	check := func(what string, data []byte, mayBeRead bool) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := CheckFormats(dir)
		switch {
		case err == nil && mayBeRead:
		case err == nil, errors.Is(err, version.ErrNewer):
			t.Errorf("%s: got %v, want damage", what, err)
		case !strings.Contains(err.Error(), "rm "+path):
			t.Errorf("%s: got %v, want the file and the command", what, err)
		}
	}
	for _, text := range []string{currentFormats, "freshet data directory\ndirectory 1\nkeys 1\naudit 1\n"} {
		for i := range text {
			for bit := range 8 {
				data := []byte(text)
				data[i] ^= 1 << bit
				check(fmt.Sprintf("bit %d of byte %d", bit, i), data, false)
			}
			check(fmt.Sprintf("cut to %d bytes", i), []byte(text[:i]), true)
			check(fmt.Sprintf("zeros from byte %d", i), append([]byte(text[:i]), make([]byte, len(text)-i)...), false)
		}
	}
}

func TestFormatsOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file  string // "" for none
		want  string // in the error
		newer bool
	}{
		"none":           {},
		"the current":    {file: currentFormats},
		"written once":   {file: "freshet data directory\ndirectory 1\nkeys 1\naudit 1\n"},
		"an earlier one": {file: "freshet data directory\ndirectory 1\n"},
		"a newer one": {
			file: "freshet data directory\ndirectory 1\nkeys 2\naudit 1\ndirectory 1\nkeys 2\naudit 1\n",
			want: "keys has format 2, but this version reads formats up to 1", newer: true,
		},
		"something new": {file: "freshet data directory\nmaps 1\nmaps 1\n", want: "maps has format 1", newer: true},
		"flipped digit": {file: "freshet data directory\ndirectory 1\nkeys 3\naudit 1\n", want: "is damaged"},
		"damaged":       {file: "freshet dat", want: "is damaged"},
		"not a number":  {file: "freshet data directory\nkeys one\n", want: "is damaged"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, FormatFile)
			if tc.file != "" {
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := OpenFormats(dir, slog.New(slog.DiscardHandler))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) ||
				errors.Is(err, version.ErrNewer) != tc.newer {
				t.Errorf("got %v, want %q, newer %v", err, tc.want, tc.newer)
			}
			text, readErr := os.ReadFile(path)
			if err != nil && string(text) != tc.file {
				t.Errorf("FORMAT of a rejected directory: got %q, want it unchanged", text)
			}
			if err == nil && (readErr != nil ||
				string(text) != currentFormats) {
				t.Errorf("FORMAT: got %q, %v; want the current formats", text, readErr)
			}
		})
	}
}
