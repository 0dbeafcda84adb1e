package faults

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestEveryReleasedFormatOpens starts the server on a data directory of every released
// format (made with hack/fixture.sh) and checks that messages, schemas and accounts exist.
func TestEveryReleasedFormatOpens(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("fixtures: got %v, %v; want some", archives, err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			unpack(t, archive, data)
			s, err := start(t, data)
			if err != nil {
				t.Fatal(err)
			}
			if status, text := call(t, s, http.MethodGet, "/readyz", ""); status != http.StatusOK {
				t.Errorf("readyz: got %d %s, want 200", status, text)
			}
			for i := range 5 {
				if text := must(t, s, http.MethodGet, peek+strconv.Itoa(i+1), ""); !strings.Contains(text,
					fmt.Sprintf(`"message %d"`, i)) {
					t.Errorf("message %d: got %s, want the message", i, text)
				}
			}
			if text := must(t, s, http.MethodGet, "/subjects/kept/versions/1", ""); !strings.Contains(text,
				`"subject":"kept"`) {
				t.Errorf("schema: got %s, want the schema", text)
			}
			must(t, s, http.MethodGet, "/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts/kept", "")
			if err := s.Stop(time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNewerFormatIsRefused checks that the server refuses a data directory of a later
// version, reports that, and leaves the directory unchanged.
func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	unpack(t, "testdata/format-1.tar.gz", data)
	format := filepath.Join(data, "FORMAT")
	newer := "freshet data directory\ndirectory 9\nkeys 1\naudit 1\n"
	if err := os.WriteFile(format, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := start(t, data)
	if err == nil || !strings.Contains(err.Error(),
		"was written by a newer version of the server; start that version") {
		t.Errorf("start: got %v, want an error that says what to do", err)
	}
	if text, err := os.ReadFile(format); err != nil || string(text) != newer {
		t.Errorf("FORMAT: got %q, %v; want it unchanged", text, err)
	}
}

// unpack extracts the files of an archive.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(zipped)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+head.Name))
		if head.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.Copy(out, in); errors.Join(err, out.Close()) != nil {
			t.Fatal(err)
		}
	}
}
