package datadir

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/base/version"
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
				string(text) != "freshet data directory\ndirectory 1\nkeys 1\naudit 1\n") {
				t.Errorf("FORMAT: got %q, %v; want the current formats", text, readErr)
			}
		})
	}
}
