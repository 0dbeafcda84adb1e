package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckResourceStore(t *testing.T) {
	t.Parallel()
	const store = "etcd/member/snap/db"
	tests := map[string]struct {
		files []string
		want  string // in the error
	}{
		"a new directory":              {},
		"clusters and their resources": {files: []string{store, "clusters/a/x"}},
		"resources only":               {files: []string{store}},
		"clusters only":                {files: []string{"clusters/a/x", "clusters/b/x"}, want: "has 2 clusters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, file := range tc.files {
				path := filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := CheckResourceStore(dir)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in the error", err, tc.want)
			}
		})
	}
}

// TestFormats checks what the commands that only look at a directory report.
func TestFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if older, err := Formats(dir); older || err != nil {
		t.Errorf("empty directory: got %v, %v; want false", older, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "admin.token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if older, err := Formats(dir); !older || err != nil {
		t.Errorf("directory without %s: got %v, %v; want true", FormatFile, older, err)
	}
	if err := writeFormats(dir); err != nil {
		t.Fatal(err)
	}
	if older, err := Formats(dir); older || err != nil {
		t.Errorf("directory of this version: got %v, %v; want false", older, err)
	}
}
