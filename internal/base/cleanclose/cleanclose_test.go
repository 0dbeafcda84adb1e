package cleanclose_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/base/cleanclose"
)

// TestEveryChangeIsFound checks that every kind of change of a closed store's files is detected.
func TestEveryChangeIsFound(t *testing.T) {
	t.Parallel()
	const file = "sub/the log"
	tests := map[string]struct {
		change func(t *testing.T, dir string)
		known  bool
		want   string // in the error
	}{
		"nothing":  {func(*testing.T, string) {}, true, ""},
		"a bit":    {func(t *testing.T, dir string) { put(t, dir, file, "datb") }, true, "has other contents"},
		"its end":  {func(t *testing.T, dir string) { put(t, dir, file, "dat") }, true, "has 3 bytes and had 4"},
		"its size": {func(t *testing.T, dir string) { put(t, dir, file, "data\n") }, true, "has 5 bytes and had 4"},
		"the file": {func(t *testing.T, dir string) { remove(t, dir, file) }, true, "is missing"},
		"the record": {func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, cleanclose.Name))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, cleanclose.Name, strings.Replace(string(text), "4", "5", 1))
		}, false, ""},
		"no record":    {func(t *testing.T, dir string) { remove(t, dir, cleanclose.Name) }, false, ""},
		"empty record": {func(t *testing.T, dir string) { put(t, dir, cleanclose.Name, "") }, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, dir, file, "data")
			put(t, dir, "empty", "")
			if err := cleanclose.Write(cleanclose.Dir(dir), []string{file, "empty"}); err != nil {
				t.Fatal(err)
			}
			tc.change(t, dir)
			known, err := cleanclose.Verify(cleanclose.Dir(dir))
			if known != tc.known || (err != nil) != (tc.want != "") {
				t.Fatalf("got known %v, %v; want %v, %q", known, err, tc.known, tc.want)
			}
			if err != nil && (!errors.Is(err, cleanclose.ErrChanged) ||
				!strings.Contains(err.Error(), file+" "+tc.want)) {
				t.Errorf("got %v, want %s %s", err, file, tc.want)
			}
			for range 2 {
				if err := cleanclose.Forget(cleanclose.Dir(dir)); err != nil {
					t.Errorf("forget: got %v, want nil", err)
				}
			}
			if known, err := cleanclose.Verify(cleanclose.Dir(dir)); known || err != nil {
				t.Errorf("verify after the record was removed: got %v, %v; want no record", known, err)
			}
		})
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
