package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ops/backup"
	"freshet/test/tally"
)

const table = "clusters/u/000001.sst"

// stage creates a staged copy.
func stage(t *testing.T, created time.Time, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, int64(len(text)))); err != nil {
			t.Fatal(err)
		}
	}
	m := &backup.Manifest{Version: 1, Created: created, Etcd: backup.EtcdEmbedded}
	if err := m.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

var files = map[string]string{
	table: "a table", "etcd.snapshot": "resources", "encryption.key": "a key",
	"tls/ca.key": "another",
}

func take(t *testing.T, target, staged string, opts backup.Options) string {
	t.Helper()
	folder, err := backup.OpenFolder(target)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}()
	path, err := folder.Write(t.Context(), staged, opts)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

func TestFilesAreLinkedToTheBackupBefore(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	first := take(t, target, stage(t, day(1), files), backup.Options{})
	changed := map[string]string{
		table: files[table], "etcd.snapshot": "other resources",
		"encryption.key": files["encryption.key"],
	}
	second := take(t, target, stage(t, day(2), changed), backup.Options{})
	for name, want := range map[string]bool{table: true, "encryption.key": true, "etcd.snapshot": false} {
		a, errA := os.Stat(filepath.Join(first, name))
		b, errB := os.Stat(filepath.Join(second, name))
		if errA != nil || errB != nil || os.SameFile(a, b) != want {
			t.Errorf("%s is the same file in both backups: got %v (%v, %v), want %v", name, os.SameFile(a, b),
				errA, errB, want)
		}
	}
	for _, path := range []string{first, second} {
		if _, err := backup.Verify(t.Context(), path, nil, nil); err != nil {
			t.Errorf("verifying %s: %v", path, err)
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(dir string) error{
		"a file has changed": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, table),
				[]byte("A table"), 0o600)
		},
		"a file is shorter": func(dir string) error { return os.Truncate(filepath.Join(dir, "etcd.snapshot"), 3) },
		"a file is missing": func(dir string) error { return os.Remove(filepath.Join(dir, "encryption.key")) },
		"no manifest":       func(dir string) error { return os.Remove(filepath.Join(dir, backup.ManifestFile)) },
		"half a manifest": func(dir string) error {
			return os.Truncate(filepath.Join(dir, backup.ManifestFile), 100)
		},
		"another manifest": func(dir string) error {
			path := filepath.Join(dir, backup.ManifestFile)
			text, err := os.ReadFile(path)
			return errors.Join(err,
				os.WriteFile(path, bytes.Replace(text, []byte("tls/ca.key"), []byte("tls/ca.kez"), 1), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := take(t, t.TempDir(), stage(t, day(1), files), backup.Options{})
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Verify(t.Context(), path, nil, nil); err == nil {
				t.Error("verify: got no error, want one")
			}
			if _, err := backup.Extract(t.Context(), path, nil, filepath.Join(t.TempDir(), "out"), nil); err == nil {
				t.Error("extract: got no error, want one")
			}
		})
	}
	path := take(t, t.TempDir(), stage(t, day(1), files), backup.Options{})
	if err := os.WriteFile(filepath.Join(path, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Verify(t.Context(), path, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "more is not in the manifest") {
		t.Errorf("additional file: got %v, want an error that it is not in the manifest", err)
	}
}

// TestIncompleteIsNoBackup interrupts writing: List does not return the incomplete
// backup, and Extract rejects it.
func TestIncompleteIsNoBackup(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	folder, err := backup.OpenFolder(target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.OpenFolder(target); errs.KindOf(err) != errs.Conflict {
		t.Errorf("second writer: got %v, want a conflict", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := folder.Write(ctx, stage(t, day(1), files),
		backup.Options{Progress: func(backup.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted write: got %v, want %v", err, context.Canceled)
	}
	// A killed process leaves this directory behind.
	incomplete := filepath.Join(target, ".incomplete-20260102T000000.000Z")
	if err := os.CopyFS(incomplete, os.DirFS(stage(t, day(2), files))); err != nil {
		t.Fatal(err)
	}
	if names, err := backup.List(target); err != nil || len(names) != 0 {
		t.Errorf("got backups %v, %v, want none", names, err)
	}
	for _, path := range []string{target, incomplete} {
		if _, err := backup.Extract(t.Context(), path, nil, t.TempDir(), nil); err == nil {
			t.Errorf("extracting %s: got no error, want one", path)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	take(t, target, stage(t, day(3), files), backup.Options{})
	if _, err := os.Stat(incomplete); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("incomplete backup still exists after the next backup: %v", err)
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	for n := range 4 {
		take(t, target, stage(t, day(n+1), files), backup.Options{})
	}
	folder, err := backup.OpenFolder(target)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := folder.Prune(2)
	if err != nil || len(removed) != 2 {
		t.Errorf("removed: got %v, error %v, want two", removed, err)
	}
	names, err := backup.List(target)
	if err != nil || len(names) != 2 || !strings.HasPrefix(names[0], "20260103") {
		t.Errorf("got backups %v, error %v, want those of the third and the fourth day", names, err)
	}
	if newest, err := backup.Newest(target); err != nil || !newest.Equal(day(4)) {
		t.Errorf("got newest %v, %v, want %v", newest, err, day(4))
	}
	for _, name := range names { // files that they shared with the removed backups still exist
		if _, err := backup.Verify(t.Context(), filepath.Join(target, name), nil, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	var stream bytes.Buffer
	if err := backup.WriteTar(t.Context(), stage(t, day(1), files), &stream,
		backup.Options{WithoutKeys: true}); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	m, err := backup.Extract(t.Context(), "-", bytes.NewReader(stream.Bytes()), to, nil)
	if err != nil || m.HasKeys {
		t.Fatalf("got a manifest with keys or error %v, want one without keys", err)
	}
	for name := range files {
		_, err := os.Stat(filepath.Join(to, name))
		if got, want := err == nil, !backup.IsKey(name); got != want {
			t.Errorf("%s exists: got %v, want %v", name, got, want)
		}
	}
	for cut := 0; cut < stream.Len()-2<<10; cut += 100 { // a tar ends with 1 KiB of zeros
		if _, err := backup.Verify(t.Context(), "-", bytes.NewReader(stream.Bytes()[:cut]), nil); err == nil {
			t.Fatalf("stream truncated after %d of %d bytes: got no error, want one", cut, stream.Len())
		}
	}
}

// TestStreamProgress checks that reading a tar stream reports every file, and at the end the totals.
func TestStreamProgress(t *testing.T) {
	t.Parallel()
	var stream bytes.Buffer
	if err := backup.WriteTar(t.Context(), stage(t, day(1), files), &stream, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(func(backup.Progress)) (*backup.Manifest, error){
		"verify": func(report func(backup.Progress)) (*backup.Manifest, error) {
			return backup.Verify(t.Context(), "-", bytes.NewReader(stream.Bytes()), report)
		},
		"extract": func(report func(backup.Progress)) (*backup.Manifest, error) {
			return backup.Extract(t.Context(), "-", bytes.NewReader(stream.Bytes()), t.TempDir(), report)
		},
	} {
		var got []backup.Progress
		m, err := read(func(p backup.Progress) { got = append(got, p) })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(m.Files)+1 {
			t.Errorf("%s: got %d reports, want one for each of %d files and one at the end", name, len(got),
				len(m.Files))
			continue
		}
		want := backup.Progress{Files: len(m.Files), AllFiles: len(m.Files), Bytes: m.Size(), AllBytes: m.Size()}
		if last := got[len(got)-1]; last != want {
			t.Errorf("%s: got %+v at the end, want %+v", name, last, want)
		}
	}
}

// TestAttackStagedLink puts a symbolic link into the staged copy, which points to a file
// of the user who takes the backup.
func TestAttackStagedLink(t *testing.T) {
	t.Parallel()
	staged, secret := stage(t, day(1), files), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("root's"), 0o600),
		os.Symlink(secret, filepath.Join(staged, "audit.log"))); err != nil {
		t.Fatal(err)
	}
	folder, err := backup.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	successes := 0
	if path, err := folder.Write(t.Context(), staged, backup.Options{}); err == nil {
		successes++
		t.Errorf("got backup %s, want an error", path)
	}
	if err := backup.WriteTar(t.Context(), staged, &bytes.Buffer{}, backup.Options{}); err == nil {
		successes++
		t.Error("got a stream, want an error")
	}
	tally.Attack(t, "reading a file through a link in the staged copy", 2, successes)
}

// TestAttackStream extracts streams that would write outside of the directory.
func TestAttackStream(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "../outside"},
		{Typeflag: tar.TypeReg, Name: "/outside"},
		{Typeflag: tar.TypeReg, Name: "clusters/../../outside"},
		{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/"},
		{Typeflag: tar.TypeLink, Name: "link", Linkname: "/etc/passwd"},
		{Typeflag: tar.TypeDir, Name: "../outside"},
		{Typeflag: tar.TypeFifo, Name: "pipe"},
	} {
		var stream bytes.Buffer
		w := tar.NewWriter(&stream)
		h.Mode = 0o600
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		to := filepath.Join(parent, "to")
		_, err := backup.Extract(t.Context(), "-", &stream, to, nil)
		attempts++
		if entries, readErr := os.ReadDir(parent); err == nil || readErr != nil || len(entries) > 1 {
			successes++
			t.Errorf("%q: got error %v and entries %v, want an error and no file outside", h.Name, err, entries)
		}
	}
	tally.Attack(t, "writing outside of a restored directory", attempts, successes)
}
